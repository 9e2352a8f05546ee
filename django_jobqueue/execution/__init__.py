"""One execution of a job, wherever it runs: a worker, a test, the caller's process."""
