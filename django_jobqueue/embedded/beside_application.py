"""A worker beside a web application: one in each process that serves it."""

from __future__ import annotations

import os
import threading
from typing import Final, TypedDict

from django.utils.autoreload import DJANGO_AUTORELOAD_ENV

from django_jobqueue.conf import conf
from django_jobqueue.embedded.embedded_worker import EmbeddedWorker, worker

GRACE_OF_RELOADS: Final = 2.0  # seconds; runserver does not serve meanwhile


class Options(TypedDict, total=False):
    """The options of ``worker()``."""

    queues: list[str] | tuple[str, ...]
    threads: int
    async_slots: int
    grace: float


class BesideApplication:
    """Starts when its process begins to serve, and not where the application is only
    imported, as in a management command or before a server forks."""

    def __init__(self, options: Options) -> None:
        self.worker: EmbeddedWorker = worker(**options)
        if os.environ.get(DJANGO_AUTORELOAD_ENV) == "true":
            self.worker.grace = min(self.worker.grace, GRACE_OF_RELOADS)
        self._process: int | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the worker, unless it was started in this process, or is turned off.

        Raises ImproperlyConfigured, as ``EmbeddedWorker.start()`` does.
        """
        if self._process == os.getpid():
            return
        with self._lock:
            if self._process != os.getpid():
                if conf.embedded and conf.mode == "queue":
                    self.worker.start()
                self._process = os.getpid()

    def stop(self) -> None:
        """Stop it, if it runs."""
        self.worker.stop()
