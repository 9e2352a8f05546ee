"""Searches through all jobs, chunk by chunk."""
