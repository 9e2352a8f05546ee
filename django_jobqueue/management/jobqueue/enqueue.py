"""``jobqueue enqueue``: enqueue one job by the name of its type."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_jobqueue.handler import enqueue
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.subcommand import Subcommand, by
from django_jobqueue.management.jobqueue.times import TIMES, database_now, moment
from django_jobqueue.store.rows import Job

ACCEPTED = "Give one JSON object, or key=value pairs."


class Enqueue(Subcommand):
    """Enqueues a job and prints its id."""

    name = "enqueue"
    summary = "Enqueue a job by the name of its type; prints its id."
    rest = "data"
    description = """\
Enqueue one job by the name of its type, and print its id.

The data is one JSON object, or key=value pairs. A value that is JSON is taken
as JSON (7, true, null, [1, 2]), any other as text; quote what must stay text.

  jobqueue enqueue shop.send_receipt order_id=7 copy=true
  jobqueue enqueue shop.send_receipt '{"order_id": 7, "copy": true}'
  jobqueue enqueue shop.find code='"007"' --run-after 10m --queue mail

A lone - reads the JSON object from the standard input. The data must fit the
handler's parameters if the handler is known here."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the job and its options."""
        parser.add_argument("job_type", metavar="TYPE", help="Name of the job type.")
        parser.add_argument(
            "data", metavar="DATA", nargs="*", help="JSON object or key=value pairs."
        )
        parser.add_argument(
            "--run-after",
            metavar="WHEN",
            help=f"Not before this: {TIMES}. A duration is from now.",
        )
        parser.add_argument(
            "--expires-at",
            metavar="WHEN",
            help="Not started after this; written like --run-after.",
        )
        parser.add_argument("--queue", help="Its queue, instead of the job type's.")
        parser.add_argument(
            "--priority",
            type=int,
            help="From -100 to 100, greater is sooner; instead of the job type's.",
        )
        parser.add_argument(
            "--id",
            help="Its id, a UUID. If a job with this id waits or runs, nothing is "
            "enqueued and the id is printed; if it is over, that is an error.",
        )
        parser.add_argument(
            "--format",
            choices=["text", "json"],
            default="text",
            help="json prints the job as an object.",
        )

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Enqueue it."""
        job = enqueue(
            options["job_type"],
            data_of(options["data"]),
            run_after=_moment("--run-after", options["run_after"]),
            expires_at=_moment("--expires-at", options["expires_at"]),
            priority=options["priority"],
            queue=options["queue"],
            id=options["id"],
            enqueued_by=by(),
        )
        if options["format"] == "json":
            console.print(json.dumps(_as_object(job), indent=2))
        else:
            console.print(str(job.id))


def data_of(words: list[str]) -> dict[str, Any]:
    """The data that these words of the command line state. Raises CommandError."""
    if words == ["-"]:
        return _object(sys.stdin.read())
    if len(words) == 1 and words[0].lstrip()[:1] in ("{", "["):
        return _object(words[0])
    data: dict[str, Any] = {}
    for word in words:
        key, sign, text = word.partition("=")
        if not sign or not key:
            raise CommandError(f"{word!r} is no key=value pair. {ACCEPTED}")
        if key in data:
            raise CommandError(f"{key!r} is given twice.")
        data[key] = _value(text)
    return data


def _object(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"The data is not JSON: {error}. {ACCEPTED}") from None
    if not isinstance(data, dict):
        raise CommandError(
            f"The data must be an object, not {type(data).__name__}. {ACCEPTED}"
        )
    return data


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> None:
    """Python's JSON has NaN and Infinity, which is text here."""
    raise ValueError(name)


def _moment(flag: str, text: Any) -> Any:
    return text and moment(flag, text, now=database_now())


def _as_object(job: Job) -> dict[str, Any]:
    return {
        "id": str(job.id),
        "job_type": job.job_type,
        "queue": job.queue,
        "priority": job.priority,
        "status": job.status,
        "run_after": job.run_after.isoformat(),
        "expires_at": job.expires_at and job.expires_at.isoformat(),
        "created_at": job.created_at.isoformat(),
    }
