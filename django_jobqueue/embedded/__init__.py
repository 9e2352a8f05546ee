"""Workers inside of a process that is there for something else: a web server, a test, a
program of one's own."""

from django_jobqueue.embedded.asgi_application import asgi
from django_jobqueue.embedded.embedded_worker import EmbeddedWorker, worker
from django_jobqueue.embedded.wsgi_application import wsgi

__all__ = ["EmbeddedWorker", "asgi", "worker", "wsgi"]
