"""What enqueues: handlers and their options, by name, in the caller's transaction."""
