"""The hot path: jobs from the enqueue to their end, always with the fence."""
