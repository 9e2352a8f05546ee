"""Enqueues jobs: by handlers and by names, in the caller's transaction."""
