"""``jobqueue enqueue``: enqueue jobs by the name of their type."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any, Final, TextIO
from uuid import UUID

from django.core.management.base import CommandError
from django.db import transaction

from django_jobqueue import signals
from django_jobqueue.conf import conf
from django_jobqueue.domain.arguments import Annotations, to_json
from django_jobqueue.domain.ids import as_id, id_of_text
from django_jobqueue.domain.job_options import OF_JOB
from django_jobqueue.domain.policy import ON_DUPLICATE
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.by_name import enqueue, enqueue_many
from django_jobqueue.exceptions import AlreadyArchived, EnqueueError, InvalidArguments
from django_jobqueue.management.jobqueue.batches import BATCH, run_batches
from django_jobqueue.management.jobqueue.console import Console, counted, were
from django_jobqueue.management.jobqueue.inputs import (
    UNKNOWN,
    data_of,
    moment,
    object_of,
    warn_of_unknown,
)
from django_jobqueue.management.jobqueue.subcommand import (
    FORMAT,
    Options,
    Subcommand,
    by,
)
from django_jobqueue.operations import get_job
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.store.rows import Job
from django_jobqueue.text import timezones
from django_jobqueue.text.durations import TIMES
from django_jobqueue.text.option_forms import as_flags
from django_jobqueue.verbs.columns import Listing, local, only_json
from django_jobqueue.verbs.declarations import Argument, Takes

Data = dict[str, Any]
ENQUEUED: Final = Listing(
    only_json("id job_type queue priority status run_after expires_at created_at tags")
)


class EnqueueingLines:
    """One run of ``jobqueue enqueue TYPE --lines FILE``."""

    def __init__(
        self, console: Console, job_type: str, path: str, how: dict[str, Any]
    ) -> None:
        self._console = console
        self._job_type = job_type
        self._declaration = registry.get(job_type)
        self._how = how
        # All of it, so that a mistake in the last line is found before the first job.
        self._data = list(self._read(path))
        self._done = 0  # lines
        self._new = 0  # jobs; a duplicate has one already

    def go(self) -> None:
        """Enqueue a job for each line."""
        bar = ("Enqueueing", len(self._data))
        signals.jobs_enqueued.connect(self._count)
        try:
            run_batches(self._steps(), self._console, bar, self._summary)
        finally:
            signals.jobs_enqueued.disconnect(self._count)
        self._console.info(self._summary())

    def _count(self, ids: list[UUID], **kwargs: Any) -> None:
        self._new += len(ids)

    def _steps(self) -> Iterator[int]:
        for start in range(0, len(self._data), BATCH):
            batch = self._data[start : start + BATCH]
            with transaction.atomic(using=conf.database):
                calls = [data for _, data in batch]
                enqueue_many(self._job_type, calls, **self._how)
            self._done += len(batch)
            yield len(batch)

    def _read(self, path: str) -> Iterator[tuple[int, Data]]:
        """Each line's number and data. Raises CommandError."""
        try:
            with _opened(path) as file:
                for number, line in enumerate(file, 1):
                    if line.strip():
                        yield number, self._checked(number, line)
        except (OSError, UnicodeError) as error:
            raise CommandError(f"--lines: {path!r} cannot be read: {error}") from None

    def _checked(self, number: int, line: str) -> Data:
        try:
            data = object_of(line, "Give one JSON object in each line.")
            to_json(data, limit=conf.max_data_bytes)
            if self._declaration is not None:
                problem = self._declaration.parameters.call_problem(data)
                if problem:
                    raise InvalidArguments(problem)
        except (CommandError, InvalidArguments) as error:
            raise CommandError(
                f"Line {number}: {error} Nothing was enqueued."
            ) from None
        return data

    def _summary(self) -> str:
        text = were(self._new, "job", "enqueued")
        if self._new < self._done:
            there = self._done - self._new
            has = "has" if there == 1 else "have"
            text += f"; {counted(there, 'line')} {has} a job already"
        if 0 < self._done < len(self._data):
            last, _ = self._data[self._done - 1]
            text += f", for the lines up to {last}"
        return f"{text}."


def _opened(path: str) -> AbstractContextManager[TextIO]:
    if path == "-":
        return nullcontext(sys.stdin)
    return open(path, encoding="utf-8-sig")  # with or without a byte order mark


class Enqueue(Subcommand):
    name = "enqueue"
    summary = "Enqueue a job, or many, by the name of the job type."
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
its own; Ctrl-C ends it between two chunks, and it prints how far it got.

  jobqueue enqueue shop.send_receipt --lines receipts.jsonl --priority -10

The data must fit the handler's parameters if the handler is known here."""

    arguments = (
        Argument("job_type", "Name of the job type.", "TYPE", words="1"),
        Argument("data", "JSON object or key=value pairs.", "DATA", words="*"),
        Argument(
            "lines",
            "A job for each line of FILE, which is the JSON object of its data; - is "
            "the standard input.",
            "FILE",
        ),
        Argument(
            "run_after",
            f"Not before this: {TIMES}. A duration is from now.",
            Takes.MOMENT,
        ),
        Argument(
            "expires_at",
            "Not started after this; written like --run-after.",
            Takes.MOMENT,
            is_to_come=True,
        ),
        Argument("queue", "The queue, instead of the job type's."),
        Argument(
            "priority",
            "From -100 to 100, higher runs first; instead of the job type's.",
            Takes.NUMBER,
        ),
        Argument(
            "on_duplicate",
            "What becomes of a duplicate of a unique job: an error, or the id of the "
            "job that is there is printed (default: as the job type declares).",
            choices=ON_DUPLICATE,
        ),
        Argument(
            "id",
            "Its id: a UUID, or any text, which stands for one UUID among the jobs of "
            "this type. If there is a job with this id, queued, running or over, "
            "nothing is enqueued and its id is printed.",
            "ID",
        ),
        FORMAT._replace(help="json prints the job as an object."),
    )

    def run(self, console: Console, options: Options) -> None:
        try:
            self._run(console, options)
        except EnqueueError as error:
            raise CommandError(as_flags(str(error))) from error

    def _run(self, console: Console, options: Options) -> None:
        now = _now()
        how = {name: options[name] for name in OF_JOB.keys() & options.keys() - {"id"}}
        how |= {
            "run_after": _moment("--run-after", options["run_after"], now),
            "expires_at": _moment("--expires-at", options["expires_at"], now),
            "enqueued_by": by(),
        }
        expires_at = how["expires_at"]
        if expires_at and expires_at <= now:
            raise CommandError(f"--expires-at: {local(expires_at)} is past.")
        if options["queue"] is not None:
            warn_of_unknown(console, [options["queue"]])
        if options["lines"] is not None:
            if options["data"] or options["id"] or console.is_json:
                raise CommandError("DATA, --id and --format json are for a single job.")
            EnqueueingLines(console, options["job_type"], options["lines"], how).go()
            return
        job = _enqueue(options, how)
        if console.is_json:
            console.json(ENQUEUED.as_object(job), ascii=True)
        else:
            console.print(str(job.id))


def _enqueue(options: Options, how: dict[str, Any]) -> Job:
    """The job that there is now: a new one, or one that has this id already. Raises
    CommandError."""
    job_type = options["job_type"]
    data = data_of(options["data"], _annotations(job_type))
    id = None if options["id"] is None else _id(job_type, options["id"])
    try:
        job = enqueue(job_type, data, id=id, **how)
    except AlreadyArchived as error:
        job = get_job(error.id)
    if job.job_type != job_type:
        raise CommandError(f"--id: job {job.id} is one of the type {job.job_type!r}.")
    return job


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


def _now() -> datetime:
    return database_now() if conf.mode == "queue" else timezones.now()


def _moment(flag: str, text: Any, now: datetime) -> Any:
    return text and moment(flag, text, now=now)
