"""Searches through all jobs: start, watch, stop, and their results."""
