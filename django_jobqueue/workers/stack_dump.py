"""Dumps the stacks of a worker process: of its jobs, and of its other threads."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.processes.loop import FOREVER, Loop
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.text.redaction import mask_text
from django_jobqueue.workers.executors.base import Executor

DEEPEST: Final = 60  # frames of a stack; the innermost are kept
LONGEST_FRAME: Final = 1_000  # characters
LARGEST: Final = 64 * 1_024  # characters of all stacks
ROOM: Final = 300  # characters for what is said beside a stack
CALLERS: Final = tuple(
    str(Path(__file__).parent.parent / "execution" / name)
    for name in ("attempt_steps.py", "atomic.py")
)

Frames = list[tuple[FrameType, int]]


def stacks(executors: Sequence[Executor]) -> dict[str, Any]:
    """The stacks of the running jobs and of the other threads, without values of
    variables.

    Stacks that do not fit are left out, and counted.
    """
    inside = sys._current_frames()
    running = [(a, executor) for executor in executors for a in executor.running]
    dumps = [_of_job(attempt, executor, inside) for attempt, executor in running]
    dumps.sort(key=lambda one: -float(one["seconds"]))
    shown = {attempt.thread for attempt, _executor in running}
    dumps += _of_threads(inside, shown | {threading.get_ident()})
    return _bounded(dumps)


def _of_job(
    attempt: Attempt, executor: Executor, inside: dict[int, FrameType]
) -> dict[str, Any]:
    since = attempt.started or attempt.claimed
    return {
        "job_id": str(attempt.job.id),
        "job_type": attempt.job.job_type,
        "seconds": round(time.monotonic() - since, 3),
        "stack": _text(_from_handler(_frames_of(attempt, executor, inside))),
    }


def _of_threads(
    inside: dict[int, FrameType], shown: set[int | None]
) -> Iterator[dict[str, Any]]:
    for thread in sorted(threading.enumerate(), key=lambda one: one.name):
        if thread.ident in inside and thread.ident not in shown:
            frames = _called(inside[thread.ident])
            yield {"thread": thread.name, "stack": _text(frames)}


def _frames_of(
    attempt: Attempt, executor: Executor, inside: dict[int, FrameType]
) -> Frames:
    """Outermost first. A coroutine that waits is in no thread."""
    coroutine: Any = attempt.task and attempt.task.get_coro()
    if coroutine is not None and not coroutine.cr_running:
        return list(_awaited(coroutine))
    return _called(inside.get(executor.thread_of(attempt) or 0))


def _called(frame: FrameType | None) -> Frames:
    return [] if frame is None else list(traceback.walk_stack(frame))[::-1]


def _awaited(coroutine: Any) -> Iterator[tuple[FrameType, int]]:
    """The frames of a coroutine, and of the coroutines that it waits for."""
    while coroutine is not None:
        for prefix, further in (("cr", "await"), ("gi", "yieldfrom"), ("ag", "await")):
            frame = getattr(coroutine, f"{prefix}_frame", None)
            if frame is not None:
                yield frame, frame.f_lineno
                coroutine = getattr(coroutine, f"{prefix}_{further}", None)
                break
        else:
            return


def _from_handler(frames: Frames) -> Frames:
    """Without what calls it; all, if it is not called yet."""
    calling = [
        index
        for index, (frame, _line) in enumerate(frames)
        if frame.f_code.co_filename in CALLERS
    ]
    return (
        frames[calling[-1] + 1 :]
        if calling and calling[-1] + 1 < len(frames)
        else frames
    )


def _text(frames: Frames) -> str:
    summary = traceback.StackSummary.extract(iter(frames[-DEEPEST:]))
    return mask_text("".join(one[:LONGEST_FRAME] for one in summary.format()))


def _bounded(dumps: list[dict[str, Any]]) -> dict[str, Any]:
    room, included = LARGEST, []
    for one in dumps:
        room -= len(one["stack"]) + ROOM
        if room >= 0:
            included.append(one)
    return {"stacks": included, "left_out": len(dumps) - len(included)}


class StackDumper(Loop):
    """Writes a stack dump on request. It starts with the first request, so that other
    workers have no thread and no connection for it."""

    name = "stack dumper"

    def __init__(
        self, worker: int, connection: OwnConnection, executors: Sequence[Executor]
    ) -> None:
        super().__init__()
        self._worker = worker
        self._connection = connection
        self._executors = executors
        self._requested = 0
        self._stored = 0

    def request(self, stack_request: int) -> None:
        """Dump the stacks for the request with this number, unless that is done."""
        if stack_request == self._requested:
            return
        self._requested = stack_request
        self.wake()
        if not self.has_started:
            self.start()

    def tick(self) -> float:
        """Store the stack dump for the latest request."""
        stack_request = self._requested
        if stack_request != self._stored:
            content = {"stack_request": stack_request, **stacks(self._executors)}
            worker_rows.store_stack_dump(self._connection, self._worker, content)
            self._connection.close()
            self._stored = stack_request
        return FOREVER if stack_request == self._requested else 0.0
