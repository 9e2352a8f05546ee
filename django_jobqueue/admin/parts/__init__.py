"""The parts of pages: values, charts, tracebacks and JSON."""
