"""``jobqueue workers``: who works, and what workers are asked to do."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from typing import Any, Final, NamedTuple

from django.core.management.base import CommandError

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.states import ALIVE
from django_jobqueue.management.jobqueue.console import Console, were
from django_jobqueue.management.jobqueue.inputs import chosen, duration
from django_jobqueue.management.jobqueue.subcommand import (
    Options,
    SubcommandWithVerbs,
    Words,
    by,
    sentences,
)
from django_jobqueue.models import Worker
from django_jobqueue.rooms import offer
from django_jobqueue.stats import current_state
from django_jobqueue.store.reading.claimers import is_alive
from django_jobqueue.store.reading.stats import WorkerRow
from django_jobqueue.text import numbers
from django_jobqueue.verbs.columns import (
    MEGABYTES,
    NUMBER,
    QUEUES,
    RIGHT,
    SPAN,
    Column,
    Listing,
    MoreRows,
    always,
    only_json,
)
from django_jobqueue.verbs.declarations import Argument, Takes, Verb, flag
from django_jobqueue.verbs.workers import OF_WORKERS

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


class Living(NamedTuple):
    """A worker, and what it was asked to do."""

    row: WorkerRow
    asked_to: str


def _name(one: Living) -> str:
    return f"{one.row.name} (remote)" if one.row.is_remote else one.row.name


WORKERS: Final = Listing(
    (
        Column("id", "Id", RIGHT, "row.id"),
        Column("", "Worker", value=_name, breaks=True),
        *only_json("name", "row"),
        Column("remote", value="row.is_remote"),
        Column(
            "state",
            "State",
            value=lambda one: one.row.state if is_alive(one.row) else "lapsed",
        ),
        Column("asked_to", "Asked to"),
        Column("running", "Running", NUMBER, "row.running"),
        Column("", "Slots", NUMBER, lambda one: one.row.threads + one.row.async_slots),
        *only_json("threads async_slots", "row"),
        Column("memory", "Memory", MEGABYTES, "row.rss", "bytes"),
        Column("age", "Age", SPAN, "row.age", "seconds"),
        Column("release", "Release", value="row.release", cut=True),
        Column(
            "queues", "Queues", QUEUES, "row.queues", "null is every queue", cut=True
        ),
        Column("lease", value="row.lease", note="seconds left"),
        Column("endpoint", value=always(None)),
    ),
    "No worker is alive.",
)
# What a room lists below them.
MORE: Final[MoreRows | None] = offer("more_rows", "workers")


class Workers(SubcommandWithVerbs):
    name = "workers"
    summary = "List workers; drain, stop or restart them."
    verbs = ("list", *OF_WORKERS, "stacks")
    wanted = "WORKER ..."
    description = f"""\
List the workers that are alive, or ask workers to do something:

{sentences(OF_WORKERS.values(), 7)}
  stacks   print the stacks of their jobs and threads

A worker is named by its id or by its name (host:pid), as the list shows them;
or workers are chosen by --host, --release or --all.

  jobqueue workers
  jobqueue workers drain web-3:4711
  jobqueue workers restart --release 2026.10
  jobqueue workers stacks --all --format json

A worker does it within a second or two, or at its next heartbeat; a remote
worker learns of it then, and has no stacks. To stop a whole runworkers, send it
SIGTERM."""
    json = f"""a list. Of "list" and of what workers were asked, each is {WORKERS.keys};
    of "stacks" {{id, name, at, stacks, left_out}}, where at is null if it did not
    answer.{chr(10) * 2 + MORE.json if MORE else ""}"""
    arguments = (
        Argument("host", "Workers of this host."),
        Argument("release", "Workers of this release."),
        flag("all", "All living workers."),
        Argument(
            "wait",
            "How long to wait for stacks (default: 10s).",
            Takes.DURATION,
            only="stacks",
        ),
    )

    def do(self, verb: str, words: Words, console: Console, options: Options) -> None:
        living = (
            Worker.objects.using(conf.database).filter(state__in=ALIVE).order_by("pk")
        )
        rows = chosen("worker", words, options, living, needs_choice=verb != "list")
        ids = [row.pk for row in rows]
        if verb == "list":
            is_choice = words or options["host"] or options["release"]
            _show(console, ids, MORE.read() if MORE and not is_choice else ())
        elif verb == "stacks":
            wait = duration("--wait", options["wait"] or "10s")
            show(console, ids, wait.total_seconds())
        else:
            _ask(OF_WORKERS[verb], console, ids)


def _show(console: Console, ids: Collection[int], more: Collection[Any] = ()) -> None:
    rows = [one for one in current_state.read().workers if one.state in ALIVE]
    desired = Worker.objects.using(conf.database).filter(pk__in=ids)
    asked = dict(desired.values_list("pk", "desired"))
    shown = [Living(row, asked.get(row.id, "")) for row in rows if row.id in {*ids}]
    if console.is_json:
        there = map(MORE.listing.as_object, more) if MORE else ()
        console.json([*map(WORKERS.as_object, shown), *there])
        return
    console.rows(WORKERS, shown)
    if more and MORE:
        console.print()
        console.rows(MORE.listing, more)


def _ask(verb: Verb, console: Console, ids: list[int]) -> None:
    asked = verb.function(ids, by=by())
    if console.is_json:
        _show(console, asked)
    else:
        console.info(f"{were(len(asked), verb.on, verb.done)}.")
    if gone := sorted(set(ids) - set(asked)):
        listed = ", ".join(map(str, gone))
        raise CommandError(f"Of these, no longer alive: {listed}.")
