"""``jobqueue workers``: who works, and what workers are asked to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.states import ALIVE, WorkerState
from django_jobqueue.management.jobqueue import worker_stacks
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.detail_page import as_json
from django_jobqueue.management.jobqueue.subcommand import by
from django_jobqueue.management.jobqueue.subcommand_verbs import SubcommandWithVerbs
from django_jobqueue.management.jobqueue.text_tables import Column, Row
from django_jobqueue.management.jobqueue.time_formats import duration
from django_jobqueue.models import Worker
from django_jobqueue.stats import current_state
from django_jobqueue.store import endpoint_rows
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading.claimers import is_alive
from django_jobqueue.text import numbers
from django_jobqueue.text.suggestions import did_you_mean

ASKED: Final = ("drain", "resume", "stop", "restart")
CHOICES: Final = "--host, --release or --all"
COLUMNS: Final = (
    Column("Id", right=True),
    Column("Worker", breaks=True),
    Column("State"),
    Column("Asked to"),
    *(Column(title, right=True) for title in ("Running", "Slots", "Memory", "Age")),
    Column("Release", cut=True),
    Column("Queues", cut=True),
)


class Workers(SubcommandWithVerbs):
    """Lists workers, and asks them."""

    name = "workers"
    summary = "List workers; drain, stop or restart them."
    verbs = ("list", *ASKED, "stacks")
    wanted = "WORKER ..."
    description = """\
List the workers that are alive, or ask workers to do something:

  drain    claim nothing more, finish what runs, and stay
  resume   claim again
  stop     finish what runs, and end; runworkers goes on with one process less
  restart  finish what runs, and end; a successor starts at once
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
    epilog = """\
--format json prints a list. Of "list" and of what workers were asked, each is
{id, name, remote, state, asked_to, running, threads, async_slots, memory
(bytes), age (seconds), release, queues (null is every queue), lease (seconds
left)}, of an endpoint with the state "endpoint" and the age of the oldest job
that was handed over to it; of "stacks" {id, name, at, stacks, left_out}, where
at is null if it did not answer."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add how workers are chosen."""
        super().add_arguments(parser)
        parser.add_argument("--host", help="Workers of this host.")
        parser.add_argument("--release", help="Workers of this release.")
        parser.add_argument("--all", action="store_true", help="All living workers.")
        parser.add_argument(
            "--wait",
            metavar="DURATION",
            help="How long to wait for stacks (default: 10s).",
        )

    only_with = {"wait": ("stacks",)}

    def do(
        self, verb: str, words: list[str], console: Console, options: dict[str, Any]
    ) -> None:
        """List them, or ask those that are named. Raises CommandError."""
        chosen = _chosen(words, options, needs_choice=verb != "list")
        if verb == "list":
            is_choice = words or options["host"] or options["release"]
            _show(console, options, chosen, endpoints=not is_choice)
        elif verb == "stacks":
            wait = duration("--wait", options["wait"] or "10s")
            worker_stacks.show(console, options, chosen, wait.total_seconds())
        else:
            _ask(verb, console, options, chosen)


def _chosen(
    words: list[str], options: dict[str, Any], *, needs_choice: bool
) -> list[int]:
    """The ids of the living workers that are meant. Raises CommandError."""
    filters = {name: options[name] for name in ("host", "release") if options[name]}
    ways = sum(map(bool, (words, filters or options["all"])))
    if ways > 1:
        raise CommandError(f"Name workers or choose them by {CHOICES}, not both.")
    if needs_choice and not ways:
        raise CommandError(f"Name workers by id or name, or choose them by {CHOICES}.")
    living = Worker.objects.using(conf.database).filter(state__in=ALIVE, **filters)
    names = dict(living.order_by("pk").values_list("pk", "name"))
    if words:
        return [_named(word, names) for word in dict.fromkeys(words)]
    if filters and not names:
        flags = " and ".join(f"--{name} {value}" for name, value in filters.items())
        raise CommandError(f"No living worker has {flags}.")
    return list(names)


def _named(word: str, names: dict[int, str]) -> int:
    """The id of the worker with this id or name. Raises CommandError."""
    ids = [id for id, name in names.items() if word in (str(id), name)]
    if not ids:
        hint = did_you_mean(word, [*names.values(), *map(str, names)])
        raise CommandError(f"There is no living worker {word!r}.{hint}")
    return ids[-1]


def _show(
    console: Console,
    options: dict[str, Any],
    ids: Iterable[int],
    *,
    endpoints: bool = False,
) -> None:
    wanted = set(ids)
    shown = [one for one in _as_objects() if one["id"] in wanted]
    if endpoints:
        shown += _endpoints()
    if options["format"] == "json":
        console.print(as_json(shown))
    elif not shown:
        console.print("No worker is alive.")
    else:
        rows = [Row(_cells(one)) for one in shown]
        console.table(COLUMNS, rows)


def _ask(verb: str, console: Console, options: dict[str, Any], ids: list[int]) -> None:
    asked = operations.ask_workers(ids, verb, by=by())
    if options["format"] == "json":
        _show(console, options, asked)
    else:
        were = "was" if len(asked) == 1 else "were"
        console.info(f"{counted(len(asked), 'worker')} {were} asked to {verb}.")
    if gone := sorted(set(ids) - set(asked)):
        listed = ", ".join(map(str, gone))
        raise CommandError(f"Of these, no longer alive: {listed}.")


def _as_objects() -> Iterator[dict[str, Any]]:
    rows = current_state.read().workers
    living = [row for row in rows if row.state in ALIVE]
    asked = dict(
        Worker.objects.using(conf.database)
        .filter(pk__in=[row.id for row in living])
        .values_list("pk", "desired")
    )
    for row in living:
        yield {
            "id": row.id,
            "name": row.name,
            "remote": row.is_remote,
            "state": row.state if is_alive(row) else "lapsed",
            "asked_to": asked.get(row.id, ""),
            "running": row.running,
            "threads": row.threads,
            "async_slots": row.async_slots,
            "memory": row.rss,
            "age": row.age,
            "release": row.release,
            "queues": row.queues,
            "lease": row.lease,
        }


def _endpoints() -> Iterator[dict[str, Any]]:
    """The endpoints, which are no workers: the jobs that were handed over to them, and
    for how long they have the oldest."""
    for one in endpoint_rows.summaries(DjangoDatabase()):
        yield {
            "id": one.id,
            "name": one.name,
            "remote": True,
            "state": WorkerState.ENDPOINT.value,
            "asked_to": "",
            "running": one.jobs,
            "threads": 0,
            "async_slots": 0,
            "memory": 0,
            "age": one.oldest,
            "release": "",
            "queues": None,
            "lease": None,
        }


def _cells(one: dict[str, Any]) -> list[str]:
    memory = one["memory"]
    is_endpoint = one["state"] == WorkerState.ENDPOINT
    return [
        str(one["id"]),
        f"{one['name']} (remote)" if one["remote"] and not is_endpoint else one["name"],
        one["state"],
        one["asked_to"] or "-",
        numbers.number(one["running"]),
        "-" if is_endpoint else numbers.number(one["threads"] + one["async_slots"]),
        numbers.megabytes(memory) if memory else "-",
        numbers.span(one["age"]),
        one["release"] or "-",
        "-" if is_endpoint else _queue_names(one["queues"]),
    ]


def _queue_names(names: list[str] | None) -> str:
    return "every" if names is None else ", ".join(names)
