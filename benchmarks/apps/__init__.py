"""What each system runs: its handlers, and a module through which jobs are enqueued.

This is also the Django app whose module ``jobs`` has our own handlers.
"""
