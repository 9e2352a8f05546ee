"""Faults that a test asks a worker process for, by its environment."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from django_jobqueue.host.maintenance.maintenance_process import MaintenanceProcess
from django_jobqueue.host.maintenance.renewer import Renewer
from django_jobqueue.host.maintenance.rescuer import Rescuer
from django_jobqueue.processes import identity
from django_jobqueue.signals import attempt_started
from django_jobqueue.workers.worker import Worker
from tests.sample import endpoints, forks, inherited
from tests.sample.jobs import note, notes

_open: list[int] = []  # descriptors that are there for their number


def install() -> None:
    """Arrange for what the environment asks."""
    if words := os.environ.get("SAMPLE_KILL_BEFORE"):
        _kill_before(*words.split())
    if constants := os.environ.get("SAMPLE_CONSTANTS"):
        _change_constants(json.loads(constants))
    if host := os.environ.get("SAMPLE_HOST"):
        identity.host = lambda: host
    if seconds := float(os.environ.get("SAMPLE_SLOW_CLAIMS", 0)):
        _slow_down_claims(seconds)
    if fault := os.environ.get("SAMPLE_KEEPERS"):
        _spoil_maintenance(*fault.split())
    if count := int(os.environ.get("SAMPLE_FORKS_FAIL", 0)):
        _spoil_forks(count)
    _change_project()


def _change_project() -> None:
    """What the code of a project may have or do."""
    if os.environ.get("SAMPLE_ENDPOINTS"):
        endpoints.declare()
    if path := os.environ.get("SAMPLE_CODE"):  # not cached: it may change at once
        exec(compile(Path(path).read_text(), path, "exec"), {"__name__": "sample_code"})
    if os.environ.get("SAMPLE_FORKS"):
        forks.connect_receivers()
    for name in os.environ.get("SAMPLE_INHERITED", "").split():
        getattr(inherited, name)()
    if count := int(os.environ.get("SAMPLE_OPEN_FILES", 0)):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (4 * count, most))
        _open.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(count))


def _kill_before(*words: str) -> None:
    """Kill the process that first starts a job with one of these words."""

    def kill(context: Any, **kwargs: Any) -> None:
        word = context.data.get("word")
        if word in words and ["killed", word] not in notes(context.data["journal"]):
            note(context.data["journal"], "killed", word)
            os.kill(os.getpid(), signal.SIGKILL)

    attempt_started.connect(kill, weak=False)


STEPS: dict[str, tuple[type, str]] = {
    "getting_ready": (MaintenanceProcess, "_get_ready"),
    "renewing": (Renewer, "tick"),
    "recovering": (Rescuer, "report"),
}


def _change_constants(values: dict[str, Any]) -> None:
    """Have other periods and pauses: by ``module.NAME`` within the package. A module
    that imported the name from another one has its own."""
    for path, value in values.items():
        module, _, name = f"django_jobqueue.{path}".rpartition(".")
        assert hasattr(import_module(module), name), path
        setattr(import_module(module), name, value)


def _slow_down_claims(seconds: float) -> None:
    """Let a worker hear late of each job that it has claimed."""
    make = Worker._make  # private: the step after a claim

    def slow(self: Worker, *args: Any) -> Any:
        time.sleep(seconds)
        return make(self, *args)

    Worker._make = slow  # private: the same


def _spoil_maintenance(how: str, step: str, first: str, last: str, file: str) -> None:
    """Let the maintenance processes with these numbers end at a step: "kill" or
    "raise". Each adds a byte to the file."""

    @cache
    def number(pid: int) -> int:
        with Path(file).open("ab") as counted:
            counted.write(b".")
        return Path(file).stat().st_size

    where, name = STEPS[step]
    original = getattr(where, name)

    def spoilt(*args: Any) -> Any:
        if int(first) <= number(os.getpid()) <= int(last):
            if how == "raise":
                raise RuntimeError("a maintenance process of the tests")
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args)

    setattr(where, name, spoilt)


def _spoil_forks(count: int) -> None:
    """Let so many forks fail for want of room."""
    fork, left = os.fork, iter(range(count))

    def spoilt() -> int:
        if next(left, None) is not None:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return fork()

    os.fork = spoilt
