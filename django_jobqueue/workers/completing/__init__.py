"""Writes outcomes in batches."""
