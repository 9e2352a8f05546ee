"""One worker: claims jobs, runs them, writes outcomes."""
