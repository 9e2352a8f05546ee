"""Faults that a test asks a worker process for, by its environment."""

from __future__ import annotations

import os
import signal
from typing import Any

from django_jobqueue.signals import attempt_started
from django_jobqueue.workers import identity, life


def install() -> None:
    """Arrange for what the environment asks."""
    if word := os.environ.get("SAMPLE_KILL_BEFORE"):

        def kill(context: Any, **kwargs: Any) -> None:
            if context.data.get("word") == word:
                os.kill(os.getpid(), signal.SIGKILL)

        attempt_started.connect(kill, weak=False)
    if looks := os.environ.get("SAMPLE_CALM_LOOKS"):
        life.CALM_LOOKS = float(looks)  # type: ignore[misc]
    if host := os.environ.get("SAMPLE_HOST"):
        identity.host = lambda: host
