"""Bulk operations: drafts, progress and actions."""
