"""What a project does before ``runworkers`` forks, and what its handlers see then."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import logging
import logging.handlers
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from django.db import connection
from django.utils import timezone, translation

from django_jobqueue import LeaseLost, job
from django_jobqueue.contrib.leases import HeldLease, lease, try_lease
from django_jobqueue.domain.ids import new_id, new_ids
from django_jobqueue.execution.signal_sender import announcer
from django_jobqueue.signals import job_succeeded

variable: contextvars.ContextVar[str] = contextvars.ContextVar("inherited", default="")
_opened: list[int] = []


def journal(*words: object) -> None:
    if path := os.environ.get("SAMPLE_JOURNAL"):
        with open(path, "a") as file:
            file.write(" ".join([str(os.getpid()), *map(str, words)]) + "\n")


# Before the fork, in the supervisor.


def query() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def query_in_a_thread() -> None:
    def poll() -> None:
        while True:
            journal("thread", "right" if is_right("thread") else "wrong")
            time.sleep(0.005)

    threading.Thread(target=poll, daemon=True).start()


def query_in_the_log() -> None:
    """Have a log handler that uses the database, as in the supervisor."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            try:
                right = is_right("log")
            except Exception as error:
                journal("log", "failed", error)
            else:
                journal("log", "right" if right else "wrong")

    logger = logging.getLogger("django_jobqueue.supervisor")
    logger.addHandler(Handler())
    logger.error("The handler of the log is there")


def run_async_code() -> None:
    asyncio.run(count_groups())


async def count_groups() -> int:
    from django.contrib.auth.models import Group

    return await Group.objects.acount()


def set_context() -> None:
    variable.set("of the supervisor")
    translation.activate("de")
    timezone.activate("Asia/Tokyo")


def use_a_cache() -> None:
    caches["client"].set("a", 1)


def announce() -> None:
    def receive(**kwargs: Any) -> None:
        time.sleep(0.05)
        journal("sent", kwargs.get("id"))

    job_succeeded.connect(receive, weak=False)
    for number in range(50):
        announcer.send(job_succeeded, None, id=f"parent's {number}")


def hold_locks() -> None:
    """Have a thread that is always inside of something."""

    def loop() -> None:
        log = logging.getLogger("tests.sample.inherited")
        log.addHandler(logging.NullHandler())
        while True:
            new_id()
            log.error("busy")

    threading.Thread(target=loop, name="busy", daemon=True).start()


held: list[HeldLease] = []


def hold_a_lease() -> None:
    one = try_lease("inherited", ttl=2)
    assert one is not None
    held.append(one)


@job
def see_lease() -> list[str]:
    """What the parent's lease is worth here, and whether others can be had."""
    try:
        held[0].check()
    except LeaseLost as error:
        reason = error.reason
    held[0].release()
    with lease("of a worker", wait=20) as ours:
        ours.check()
    return [reason, str(try_lease("inherited"))]


def change_signals() -> None:
    for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: None)


def change_process() -> None:
    os.umask(0o027)
    os.environ["SAMPLE_CHANGED"] = "yes"
    os.chdir(tempfile.gettempdir())
    atexit.register(lambda: journal("atexit"))


def open_a_file() -> None:
    descriptor = os.open(os.environ["SAMPLE_JOURNAL"], os.O_RDONLY)
    _opened.append(descriptor)


def print_without_a_line_end() -> None:
    sys.stdout.write("said before; ")
    log = logging.getLogger("tests.sample.inherited.kept")
    target = logging.StreamHandler()
    log.addHandler(logging.handlers.MemoryHandler(1_000, target=target))
    log.warning("kept back; ")


class Client(BaseCache):
    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(params)

    def set(self, *args: Any, **kwargs: Any) -> None:
        journal("cache", "set")

    def get(self, key: str, *args: Any, **kwargs: Any) -> Any:
        journal("cache", "get")

    def close(self, **kwargs: Any) -> None:
        journal("cache", "closed")


# Handlers.


def is_right(word: str) -> bool:
    """Whether the database answers what it was asked."""
    token = f"{word} {os.getpid()} {time.monotonic_ns()}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s", [token])
        return bool(cursor.fetchone()[0] == token)


@job(max_attempts=1)
def ask(count: int) -> dict[str, int]:
    return {"wrong": sum(not is_right("handler") for _ in range(count))}


@job(max_attempts=1, timeout=10)
def ask_async() -> int:
    return asyncio.run(count_groups())


@job(max_attempts=1)
def see_context() -> list[str]:
    zone = timezone.get_current_timezone_name()
    return [variable.get(), translation.get_language(), zone]


@job(max_attempts=1)
def see_process() -> dict[str, Any]:
    before = os.umask(0)
    os.umask(before)
    return {
        "pid": os.getpid(),
        "session": os.getsid(0),
        "group": os.getpgid(0),
        "supervisor": os.getppid(),
        "umask": before,
        "folder": os.getcwd(),
        "environment": os.environ.get("SAMPLE_CHANGED"),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "signals": {
            name: getattr(signal.getsignal(getattr(signal, name)), "__name__", "")
            or str(signal.getsignal(getattr(signal, name)))
            for name in ("SIGUSR1", "SIGTERM", "SIGINT", "SIGHUP", "SIGCHLD")
        },
        "random": random.random(),
        "ids": [str(id) for id in new_ids(500)],
        "open": sorted(descriptors()),
    }


@job(max_attempts=1)
def see_program() -> list[str]:
    done = subprocess.run(
        ["ls", "-l", "/proc/self/fd"], capture_output=True, text=True, check=True
    )
    opened = [line.split()[8:] for line in done.stdout.splitlines()[1:]]
    return [" ".join(words) for words in opened if int(words[0]) > 2]


@job(max_attempts=1)
def say(word: str) -> None:
    sys.stdout.write(f"{word}; ")


def descriptors() -> Iterator[str]:
    for number in os.listdir("/proc/self/fd"):
        try:
            yield os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
