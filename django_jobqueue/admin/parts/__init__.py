"""What pages are made of: values, charts, tracebacks and JSON as they read."""
