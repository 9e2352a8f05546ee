"""Many jobs of one type, whose data are lines of JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TextIO
from uuid import UUID

from django.core.management.base import CommandError
from django.db import transaction

from django_jobqueue import signals
from django_jobqueue.conf import conf
from django_jobqueue.domain.arguments import to_json
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.by_name import enqueue_many
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.management.jobqueue.batches import BATCH, run_batches
from django_jobqueue.management.jobqueue.console import Console, counted, were
from django_jobqueue.management.jobqueue.inputs import object_of

Data = dict[str, Any]


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
