"""Writes what attempts came to, in batches."""
