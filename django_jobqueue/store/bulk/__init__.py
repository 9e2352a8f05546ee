"""Bulk operations: their rows, and their work chunk by chunk."""
