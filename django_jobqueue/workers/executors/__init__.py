"""Where handlers run: threads, and an event loop."""
