"""One connection of a process that listens, as long as anybody in it waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.processes.listener import Listener
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.notify import News

CHECK_HEARD: Final = 30.0  # seconds between checks while notifications arrive
CHECK_UNHEARD: Final = 1.0  # and without notifications, as behind a pooler
EVERYTHING: Final = ""  # the subject of all

Wake = Callable[[], None]


class SharedListener:
    """Listens for everybody in this process who waits for notifications of one sort.

    Their subject says whom they are for; who listens to EVERYTHING hears all of them.
    A notification only shortens a wait.
    """

    def __init__(self, purpose: str, *news: News) -> None:
        self.hears = False  # something has been heard on this connection
        self._purpose = purpose  # application_name in pg_stat_activity
        self._news = news
        self._lock = threading.Lock()
        self._waiting: dict[str, list[Wake]] = {}
        self._listener: Listener | None = None

    @contextmanager
    def listening(self, subject: str, wake: Wake) -> Iterator[None]:
        """Have ``wake`` called in this block, in another thread, whenever the subject
        should be checked."""
        self._enter(subject, wake)
        try:
            yield
        finally:
            self._leave(subject, wake)

    def _enter(self, subject: str, wake: Wake) -> None:
        with self._lock:
            self._waiting.setdefault(subject, []).append(wake)
            if self._listener is None and conf.listen is not False:
                self._listener = Listener(OwnConnection(self._purpose), self._hear)
                self._listener.start()

    def _leave(self, subject: str, wake: Wake) -> None:
        """When nobody is left, stop listening."""
        with self._lock:
            wakes = self._waiting[subject]
            wakes.remove(wake)
            if not wakes:
                del self._waiting[subject]
            idle = None if self._waiting else self._listener
            if idle is not None:
                self._listener, self.hears = None, False
        if idle is not None:
            idle.stop(CHECK_UNHEARD)

    def _hear(self, news: News, about: str) -> None:
        with self._lock:
            if news in self._news:
                subjects = {about, EVERYTHING}
                callbacks = [
                    wake for one in subjects for wake in self._waiting.get(one, ())
                ]
            elif news is News.JOB_TYPES:  # or it has just begun to listen
                callbacks = [wake for wakes in self._waiting.values() for wake in wakes]
            else:
                callbacks = []
        self.hears = self.hears or news is not News.JOB_TYPES
        for wake in callbacks:
            wake()
