"""The changes that operators make to jobs and failure groups."""
