"""Bulk operations: drafts, progress, and how they are steered."""
