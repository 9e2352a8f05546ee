"""Requests stack dumps of workers, waits for them, and shows them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.subcommand import by
from django_jobqueue.models import Worker
from django_jobqueue.text import numbers

sleep = time.sleep
POLL_EVERY = 0.1  # seconds


def show(console: Console, ids: list[int], seconds: float) -> None:
    """Request stack dumps of these workers, wait this long for all, and show them."""
    operations.request_stack_dumps(ids, by=by())
    dumps = [_as_object(worker) for worker in _when_dumped(ids, seconds)]
    if console.is_json:
        console.json(dumps)
        return
    for one in dumps:
        console.section(f"Worker {one['name']}", _text(one))


def _when_dumped(ids: list[int], seconds: float) -> list[Worker]:
    """The workers when all have stored their stack dump, or the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        rows = Worker.objects.using(conf.database).filter(pk__in=ids).order_by("pk")
        workers = list(rows)
        if all(map(_has_dumped, workers)) or time.monotonic() >= deadline:
            return workers
        sleep(POLL_EVERY)


def _has_dumped(worker: Worker) -> bool:
    asked, dump = _object(worker.request), _object(worker.stack_dump)
    return asked.get("stack_request") == dump.get("stack_request")


def _as_object(worker: Worker) -> dict[str, Any]:
    dump = _object(worker.stack_dump) if _has_dumped(worker) else {}
    return {
        "id": worker.pk,
        "name": worker.name,
        "at": dump.get("at"),
        "stacks": dump.get("stacks", []),
        "left_out": dump.get("left_out", 0),
    }


def _text(one: dict[str, Any]) -> str:
    if one["at"] is None:
        return "It did not answer in time. Ask again, or see whether it is alive."
    return "\n".join(_lines(one))


def _lines(one: dict[str, Any]) -> Iterator[str]:
    for stack in one["stacks"]:
        if "job_id" in stack:
            ran = numbers.run_time(float(stack.get("seconds", 0)))
            yield f"Job {stack['job_id']} ({stack.get('job_type')}), for {ran}:"
        else:
            yield f"Thread {stack.get('thread')}:"
        yield str(stack.get("stack", "")).rstrip("\n")
        yield ""
    if one["left_out"]:
        yield f"{one['left_out']} more had no room."


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
