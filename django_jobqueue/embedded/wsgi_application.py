"""A WSGI application with a worker beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Unpack

from django_jobqueue.embedded.beside_application import BesideApplication, Options

Application = Callable[[Any, Any], Iterable[bytes]]


class WSGIApplication:
    """Passes every request to the application, and starts the worker."""

    def __init__(self, application: Application, beside: BesideApplication) -> None:
        self.beside = beside
        self._application = application

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        """Serve one request."""
        self.beside.start()
        return self._application(environ, start_response)


def wsgi(application: Application, **options: Unpack[Options]) -> WSGIApplication:
    """The application with a worker beside it, in each process that serves it::

        application = wsgi(get_wsgi_application(), threads=2)

    The worker starts with the first request, and so after the server has forked; it
    stops when the process ends. The options are those of ``django_jobqueue.worker()``.
    ``JOBQUEUE["EMBEDDED"] = False`` turns the worker off.
    """
    return WSGIApplication(application, BesideApplication(options))
