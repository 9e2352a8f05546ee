"""Workers inside of a process that is there for something else: a web server, a test, a
program of one's own."""

from django_jobqueue.embedded.embedded_worker import EmbeddedWorker, worker

__all__ = ["EmbeddedWorker", "worker"]
