"""Where handlers run: threads for sync ones, one event loop for async ones."""
