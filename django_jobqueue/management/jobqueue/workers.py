"""``jobqueue workers``: who works, and what workers are asked to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.states import ALIVE, WorkerState
from django_jobqueue.logs import one_line
from django_jobqueue.management.jobqueue import worker_stacks
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.detail_page import as_json
from django_jobqueue.management.jobqueue.subcommand import by
from django_jobqueue.management.jobqueue.subcommand_verbs import SubcommandWithVerbs
from django_jobqueue.management.jobqueue.text_tables import Column, Row
from django_jobqueue.management.jobqueue.time_formats import duration
from django_jobqueue.models import Worker
from django_jobqueue.stats import current_state, endpoints
from django_jobqueue.stats.endpoints import EndpointState, StoredAnswer
from django_jobqueue.store.reading.claimers import is_alive
from django_jobqueue.text import numbers, timezones
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
ENDPOINT_COLUMNS: Final = (
    Column("Endpoint", breaks=True),
    Column("Address", cut=True),
    *(Column(title, right=True) for title in ("Handed over", "Oldest")),
    Column("Last answer"),
    *(Column(title, right=True) for title in ("Took", "Ago", "Failed lately")),
    Column("Last failure", cut=True),
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
left), endpoint}; of "stacks" {id, name, at, stacks, left_out}, where at is null
if it did not answer.

An endpoint has the state "endpoint", and the age of the oldest job that was
handed over to it. Of all others, "endpoint" is null; of these it is {address
(host and port; null if it is not in ENDPOINTS here), last, last_failure,
minutes, answered, failed (of the answers in so many minutes)}. An answer is
null or {class (such as 2xx, timeout or refused), status (of HTTP, or null),
at, seconds, problem, worker}."""

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
            _show(console, options, chosen, with_endpoints=not is_choice)
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
    with_endpoints: bool = False,
) -> None:
    wanted = set(ids)
    shown = [one for one in _as_objects() if one["id"] in wanted]
    states = endpoints.read() if with_endpoints else ()
    if options["format"] == "json":
        console.print(as_json([*shown, *map(_endpoint_object, states)]))
        return
    if shown:
        console.table(COLUMNS, [Row(_cells(one)) for one in shown])
    else:
        console.print("No worker is alive.")
    if states:
        console.print()
        console.table(ENDPOINT_COLUMNS, [Row(_endpoint_cells(one)) for one in states])


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
            "endpoint": None,
        }


def _endpoint_object(state: EndpointState) -> dict[str, Any]:
    """An endpoint, which is no worker, with the keys of one."""
    return {
        "id": state.id,
        "name": state.name,
        "remote": True,
        "state": WorkerState.ENDPOINT.value,
        "asked_to": "",
        "running": state.jobs,
        "threads": 0,
        "async_slots": 0,
        "memory": 0,
        "age": state.oldest,
        "release": "",
        "queues": None,
        "lease": None,
        "endpoint": endpoints.answers_object(state),
    }


def _endpoint_cells(state: EndpointState) -> Sequence[str]:
    answers, last = state.answers, state.answers.last
    failure = answers.last_failure
    counts = map(numbers.number, (answers.failed, answers.answered))
    return [
        state.name,
        "not in ENDPOINTS here" if state.host is None else state.host,
        numbers.number(state.jobs),
        numbers.span(state.oldest) if state.jobs else "-",
        "-" if last is None else last.label,
        "-" if last is None else numbers.run_time(last.seconds),
        "-" if last is None else _age(last),
        " of ".join(counts) if answers.answered else "-",
        "-" if failure is None else _failure_text(failure),
    ]


def _failure_text(failure: StoredAnswer) -> str:
    text = f"{failure.label}, {_age(failure)} ago, seen by {failure.worker}"
    return one_line(f"{text}: {failure.problem}" if failure.problem else text)


def _age(answer: StoredAnswer) -> str:
    return numbers.span((timezones.now() - answer.at).total_seconds())


def _cells(one: dict[str, Any]) -> list[str]:
    memory = one["memory"]
    return [
        str(one["id"]),
        f"{one['name']} (remote)" if one["remote"] else one["name"],
        one["state"],
        one["asked_to"] or "-",
        numbers.number(one["running"]),
        numbers.number(one["threads"] + one["async_slots"]),
        numbers.megabytes(memory) if memory else "-",
        numbers.span(one["age"]),
        one["release"] or "-",
        _queue_names(one["queues"]),
    ]


def _queue_names(names: list[str] | None) -> str:
    return "every" if names is None else ", ".join(names)
