"""Where workers are at this moment: asked, waited for, and shown."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.detail_page import as_json, print_text
from django_jobqueue.management.jobqueue.subcommand import by
from django_jobqueue.models import Worker
from django_jobqueue.text import numbers

sleep = time.sleep
EVERY = 0.1  # seconds between two looks


def show(
    console: Console, options: dict[str, Any], ids: list[int], seconds: float
) -> None:
    """Ask these workers, wait so long for all of them, and show what they answered."""
    operations.ask_where(ids, by=by())
    answers = [_as_object(worker) for worker in _answered(ids, seconds)]
    if options["format"] == "json":
        console.print(as_json(answers))
        return
    for one in answers:
        print_text(console, f"Worker {one['name']}", _text(one))


def _answered(ids: list[int], seconds: float) -> list[Worker]:
    """The workers when all have answered, or the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        rows = Worker.objects.using(conf.database).filter(pk__in=ids).order_by("pk")
        workers = list(rows)
        if all(map(_has_answered, workers)) or time.monotonic() >= deadline:
            return workers
        sleep(EVERY)


def _has_answered(worker: Worker) -> bool:
    asked, answer = _object(worker.request), _object(worker.answer)
    return asked.get("inquiry") == answer.get("inquiry")


def _as_object(worker: Worker) -> dict[str, Any]:
    answer = _object(worker.answer) if _has_answered(worker) else {}
    return {
        "id": worker.pk,
        "name": worker.name,
        "at": answer.get("at"),
        "stacks": answer.get("stacks", []),
        "left_out": answer.get("left_out", 0),
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
