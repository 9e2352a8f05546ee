"""Faults that a test asks a worker process for, by its environment."""

from __future__ import annotations

import os
import resource
import signal
from typing import Any

from django_jobqueue.signals import attempt_started
from django_jobqueue.workers import identity

_open: list[int] = []  # descriptors that are there for their number


def install() -> None:
    """Arrange for what the environment asks."""
    if word := os.environ.get("SAMPLE_KILL_BEFORE"):

        def kill(context: Any, **kwargs: Any) -> None:
            if context.data.get("word") == word:
                os.kill(os.getpid(), signal.SIGKILL)

        attempt_started.connect(kill, weak=False)
    if host := os.environ.get("SAMPLE_HOST"):
        identity.host = lambda: host
    if count := int(os.environ.get("SAMPLE_OPEN_FILES", 0)):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (4 * count, most))
        _open.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(count))
