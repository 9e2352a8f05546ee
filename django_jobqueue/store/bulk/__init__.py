"""Stores bulk operations, and works on their jobs chunk by chunk."""
