"""What operators do to jobs and failure groups."""
