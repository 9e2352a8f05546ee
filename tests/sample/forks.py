"""Handlers that fork, and whose child comes back."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import transaction

from django_jobqueue import Context, job
from django_jobqueue.signals import attempt_started, job_succeeded
from tests.sample.inherited import is_right
from tests.sample.jobs import note

Fork = dict[str, Any]

# How a child ends, and the exit code that this comes to: as in any Python program.
ENDS = {
    "return": 0,
    "raise": 1,
    "exit": 3,
    "exit with a text": 1,
    "query": 0,
    "_exit": 4,
}


def fork(journal: str, end: str) -> int | None:
    """Returns the exit code of the child to its parent, and None to the child."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    note(journal, "child", end)
    match end:
        case "raise":
            raise ValueError("raised in a fork")
        case "exit":
            sys.exit(3)
        case "exit with a text":
            sys.exit("said by a fork")
        case "query":
            Group.objects.create(name=f"of a fork {os.getpid()}")
        case "_exit":
            os._exit(4)
    return None


def work(journal: str, end: str) -> dict[str, Any]:
    note(journal, "begun")
    code = fork(journal, end)
    if code is None:
        note(journal, "child came back")
        return {}
    note(journal, "went on")
    return {"code": code, "right": is_right("parent")}


def middleware(get_result: Callable[[Context], Any]) -> Callable[[Context], Any]:
    def call(context: Context) -> Any:
        code = fork(context.data["journal"], context.data["end"])
        if code is None:
            return {"code": None}
        return {**get_result(context), "code": code}

    return call


def late_middleware(get_result: Callable[[Context], Any]) -> Callable[[Context], Any]:
    def call(context: Context) -> Any:
        try:
            return get_result(context)
        finally:
            note(context.data["journal"], "after")

    return call


@job(max_attempts=1)
def in_handler(journal: str, end: str) -> Fork:
    return work(journal, end)


@job(max_attempts=1, atomic=True)
def in_transaction(journal: str, end: str) -> Fork:
    Group.objects.create(name=f"of {end}")
    return work(journal, end)


@job(max_attempts=1)
def in_block(journal: str, end: str) -> Fork:
    with transaction.atomic():
        Group.objects.create(name=f"of {end} once more")
        return work(journal, end)


@job(max_attempts=1, middleware=(late_middleware,))
def inside_middleware(journal: str, end: str) -> Fork:
    return work(journal, end)


def outside(journal: str, end: str) -> Fork:
    """Something else forks, before the handler or after it."""
    note(journal, "begun")
    note(journal, "went on")
    return {"code": ENDS[end], "right": is_right("parent")}


in_middleware = job(
    name="tests.sample.forks.in_middleware", max_attempts=1, middleware=(middleware,)
)(outside)
in_receiver = job(name="tests.sample.forks.in_receiver", max_attempts=1)(outside)
in_late_receiver = job(name="tests.sample.forks.in_late_receiver", max_attempts=1)(
    outside
)


@job(max_attempts=1)
async def in_coroutine(journal: str, end: str) -> Fork:
    note(journal, "begun")
    code = fork(journal, end)
    note(journal, "went on" if code is not None else "child came back")
    return {"code": code, "right": True}


@job(max_attempts=1)
async def in_coroutine_that_goes_on(journal: str, end: str) -> Fork:
    """The child comes back to the event loop by awaiting something."""
    note(journal, "begun")
    code: int | None
    try:
        code = fork(journal, end)
    except BaseException:
        await asyncio.sleep(0)
        raise
    await asyncio.sleep(0)
    note(journal, "went on" if code is not None else "child came back")
    return {"code": code, "right": True}


@job(max_attempts=1)
async def in_sync_code(journal: str, end: str) -> Fork:
    return await sync_to_async(work)(journal, end)


@job(max_attempts=1)
async def in_other_thread(journal: str, end: str) -> Fork:
    return await asyncio.to_thread(work, journal, end)


PLACES = {name: made for name, made in [*globals().items()] if name.startswith("in_")}


def _receive(job_type: str, context: Context, **kwargs: Any) -> None:
    if job_type.endswith(".in_receiver"):
        fork(context.data["journal"], context.data["end"])


def _receive_late(job_type: str, id: Any, **kwargs: Any) -> None:
    from django_jobqueue.models import ArchivedJob

    if job_type.endswith(".in_late_receiver"):
        data = ArchivedJob.objects.get(id=id).data
        fork(data["journal"], data["end"])


def connect_receivers() -> None:
    """In worker processes alone: signals without receivers cost less."""
    attempt_started.connect(_receive)
    job_succeeded.connect(_receive_late)


def _double(number: int) -> int:
    assert is_right("pool")
    return 2 * number


@job(max_attempts=1, timeout=30)
def use_pool() -> dict[str, Any]:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        doubled = pool.map(_double, range(10))
    return {"doubled": doubled, "right": is_right("parent")}


@job(max_attempts=1, timeout=30)
def terminate() -> int:
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=[60])
    process.start()
    process.terminate()
    process.join()
    return process.exitcode or 0


@job(max_attempts=1)
def see_signals_of_a_fork() -> list[str]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        names = [
            getattr(signal.getsignal(number), "__name__", str(signal.getsignal(number)))
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        ]
        os.write(writer, " ".join(names).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    return os.read(reader, 1_000).decode().split()
