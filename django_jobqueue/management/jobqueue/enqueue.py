"""``jobqueue enqueue``: enqueue jobs by the name of their type."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from django_jobqueue.conf import conf
from django_jobqueue.domain.annotations import Annotations
from django_jobqueue.domain.ids import as_id, id_of_text
from django_jobqueue.domain.policy import ON_DUPLICATE
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.by_name import enqueue
from django_jobqueue.exceptions import AlreadyArchived, DuplicateJob, InvalidArguments
from django_jobqueue.management.jobqueue.batches import BATCH
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.data import UNKNOWN, data_of
from django_jobqueue.management.jobqueue.enqueue_lines import EnqueueingLines
from django_jobqueue.management.jobqueue.queues import warn_of_unknown
from django_jobqueue.management.jobqueue.subcommand import Subcommand, by
from django_jobqueue.management.jobqueue.times import TIMES, moment
from django_jobqueue.operations import get_job
from django_jobqueue.stats.clock import database_now
from django_jobqueue.store.rows import Job
from django_jobqueue.text import timezones

OPTIONS: Final = (
    "--run-after",
    "--expires-at",
    "--queue",
    "--priority",
    "--on-duplicate",
    "--id",
)


class Enqueue(Subcommand):
    """Enqueues a job and prints its id, or many from a file."""

    name = "enqueue"
    summary = "Enqueue a job, or many, by the name of the job type."
    rest = "data"
    reads_jobs = False  # there are modes that run the job here
    description = f"""\
Enqueue one job by the name of its type, and print its id.

The data is one JSON object, or key=value pairs. A value that is JSON is taken
as JSON (7, true, null, [1, 2]), any other as text. It is text, too, where the
handler's parameter is annotated as str; elsewhere quote what must stay text.

  jobqueue enqueue shop.send_receipt order_id=7 copy=true
  jobqueue enqueue shop.send_receipt '{{"order_id": 7, "copy": true}}'
  jobqueue enqueue shop.find code='"007"' --run-after 10m --queue mail
  jobqueue enqueue shop.nightly --id "$(date +%F)"

A lone - reads the JSON object from the standard input. --lines enqueues a job
for each line of a file, and prints how many. All lines are read and checked
first. Then the jobs are enqueued in chunks of {BATCH:,}, each a transaction of
its own; Ctrl-C ends it between two of them, and it says how far it came.

  jobqueue enqueue shop.send_receipt --lines receipts.jsonl --priority -10

The data must fit the handler's parameters if the handler is known here."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the job and its options."""
        parser.add_argument("job_type", metavar="TYPE", help="Name of the job type.")
        parser.add_argument(
            "data", metavar="DATA", nargs="*", help="JSON object or key=value pairs."
        )
        parser.add_argument(
            "--lines",
            metavar="FILE",
            help="A job for each line of FILE, which is the JSON object of its data; - "
            "is the standard input.",
        )
        _add_options(parser)
        parser.add_argument(
            "--id",
            metavar="ID",
            help="Its id: a UUID, or any text, which stands for one UUID among the "
            "jobs of this type. If there is a job with this id, queued, running or "
            "over, nothing is enqueued and its id is printed.",
        )
        parser.add_argument(
            "--format",
            choices=["text", "json"],
            default="text",
            help="json prints the job as an object.",
        )

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Enqueue it, or one for each line."""
        how = {
            "run_after": _moment("--run-after", options["run_after"]),
            "expires_at": _moment("--expires-at", options["expires_at"]),
            "priority": options["priority"],
            "queue": options["queue"],
            "enqueued_by": by(),
            "on_duplicate": options["on_duplicate"],
        }
        if options["queue"] is not None:
            warn_of_unknown(console, [options["queue"]])
        try:
            self._enqueue(console, options, how)
        except DuplicateJob as error:
            raise CommandError(
                f"{error.problem} With --on-duplicate return it is no error."
            ) from error

    @staticmethod
    def _enqueue(
        console: Console, options: dict[str, Any], how: dict[str, Any]
    ) -> None:
        if options["lines"] is not None:
            if options["data"] or options["id"] or options["format"] == "json":
                raise CommandError("DATA, --id and --format json are for a single job.")
            EnqueueingLines(console, options["job_type"], options["lines"], how).go()
            return
        job = _enqueue(options, how)
        if options["format"] == "json":
            console.print(json.dumps(_as_object(job), indent=2))
        else:
            console.print(str(job.id))


def _enqueue(options: dict[str, Any], how: dict[str, Any]) -> Job:
    """The job that there is now: a new one, or one that has this id already. Raises
    CommandError."""
    job_type = options["job_type"]
    data = data_of(options["data"], _annotations(job_type))
    _refuse_options(job_type, data)
    id = None if options["id"] is None else _id(job_type, options["id"])
    try:
        job = enqueue(job_type, data, id=id, **how)
    except AlreadyArchived as error:
        job = get_job(error.id)
    if job.job_type != job_type:
        raise CommandError(f"--id: job {job.id} is one of the type {job.job_type!r}.")
    return job


def _refuse_options(job_type: str, data: dict[str, Any]) -> None:
    """Raises CommandError for options of the job among the data of a handler that has
    no such parameters."""
    declaration = registry.get(job_type)
    if declaration is None or declaration.parameters.open_ended:
        return
    for name in data.keys() - declaration.parameters.names:
        flag = f"--{name.replace('_', '-')}"
        if flag in OPTIONS:
            raise CommandError(
                f"{declaration.parameters.function}() has no parameter {name!r}. It "
                f"is an option of the job: {flag}."
            )


def _id(job_type: str, text: str) -> UUID:
    """The id that was given, or the one that this text stands for. Raises
    CommandError."""
    if not text.strip():
        raise CommandError("--id must not be empty.")
    try:
        return as_id(text)
    except InvalidArguments:
        return id_of_text(job_type, text)


def _annotations(job_type: str) -> Annotations:
    """Those of the handler; they allow everything if it is not known here."""
    declaration = registry.get(job_type)
    return UNKNOWN if declaration is None else declaration.parameters.annotations


def _add_options(parser: CommandParser) -> None:
    """When, where and how urgently."""
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
    parser.add_argument("--queue", help="The queue, instead of the job type's.")
    parser.add_argument(
        "--priority",
        type=int,
        help="From -100 to 100, greater is sooner; instead of the job type's.",
    )
    parser.add_argument(
        "--on-duplicate",
        choices=ON_DUPLICATE,
        help="What becomes of a duplicate of a unique job: an error, or the id of the "
        "job that is there is printed (default: what the job type says).",
    )


def _now() -> datetime:
    return database_now() if conf.mode == "queue" else timezones.now()


def _moment(flag: str, text: Any) -> Any:
    return text and moment(flag, text, now=_now())


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
        "tags": list(job.tags),
    }
