"""``runworkers --reload``: starts workers anew when the code changes."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

from django.apps import apps
from django.utils import autoreload

from django_jobqueue.processes.process_state import signals_handled

logger = logging.getLogger("django_jobqueue.supervisor")

_PR_SET_PDEATHSIG: Final = 1
INSTALLED: Final = {"site-packages", "dist-packages"}


def is_reloaded() -> bool:
    """True if this process is the one that is started anew."""
    return os.environ.get(autoreload.DJANGO_AUTORELOAD_ENV) == "true"


class Reloader:
    """Runs the same command in a process of its own, and another one after each change.

    Its successor starts at once. The one before has its grace to finish what runs; as
    in a rolling deploy, both do jobs for a while.
    """

    def __init__(self) -> None:
        self._changed: Path | None = None
        self._is_stopping = False
        self._current: subprocess.Popen[bytes] | None = None
        self._leaving: list[subprocess.Popen[bytes]] = []

    def run(self) -> int:
        """Run until a signal; returns the exit code of the last process."""
        autoreload.file_changed.connect(self._note)
        try:
            with signals_handled(self._pass_on):
                return self._run()
        finally:
            autoreload.file_changed.disconnect(self._note)

    def _run(self) -> int:
        self._current = _start()
        code = 0
        for _ in _reload_ticks():
            self._leaving = [one for one in self._leaving if one.poll() is None]
            code = self._poll_current(code)
            if self._is_stopping and self._current is None and not self._leaving:
                break
            if self._changed is not None and not self._is_stopping:
                self._replace(self._changed)
        return code

    def _poll_current(self, code: int) -> int:
        ended = None if self._current is None else self._current.poll()
        if ended is None:
            return code
        self._current = None
        if not self._is_stopping:
            logger.warning(
                "The workers ended with exit code %d; waiting for a change of the code",
                ended,
            )
        return ended

    def _replace(self, changed: Path) -> None:
        self._changed = None
        logger.info("%s changed: starting workers with the new code", changed)
        if self._current is not None:
            self._current.terminate()
            self._leaving.append(self._current)
        self._current = _start()

    def _note(self, file_path: Path, **kwargs: Any) -> bool:
        """A receiver of Django's signal; True: this is all that is to be done."""
        self._changed = file_path
        return True

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True
        for process in (self._current, *self._leaving):
            if process is not None:
                process.send_signal(number)


def _start() -> subprocess.Popen[bytes]:
    """Start this command anew; its signals come from here alone."""
    return subprocess.Popen(
        autoreload.get_child_arguments(),
        env={**os.environ, autoreload.DJANGO_AUTORELOAD_ENV: "true"},
        process_group=0,
        preexec_fn=_end_with_parent if sys.platform == "linux" else None,
    )


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _reload_ticks() -> Iterator[None]:
    """Look for changes, about once a second, forever."""
    reloader = autoreload.get_reloader()
    for folder in _folders():
        reloader.watch_dir(folder, "**/*.py")
    autoreload.autoreload_started.send(sender=reloader)
    yield from reloader.tick()


def _folders() -> set[Path]:
    """The project's apps: also what is imported late there, and by workers alone."""
    folders = {Path(config.path) for config in apps.get_app_configs()}
    return {folder for folder in folders if not INSTALLED & set(folder.parts)}
