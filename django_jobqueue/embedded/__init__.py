"""Workers in threads of a process that is there for something else: a web server, a
test, a program of your own. From top to bottom::

    asgi_application │ wsgi_application     a worker beside an application
    beside_application                      starts it once in each serving process
    embedded_worker                         the public worker: start, stop, wait
    embedded_supervisor │ stop_at_exit      starts, ends, replaces │ exits and forks
    threaded_worker                         the worker, as host control sees it
"""

from django_jobqueue.embedded.asgi_application import asgi
from django_jobqueue.embedded.embedded_worker import EmbeddedWorker, worker
from django_jobqueue.embedded.wsgi_application import wsgi

__all__ = ["EmbeddedWorker", "asgi", "worker", "wsgi"]
