"""Runs handlers: in threads, and in an event loop."""
