"""Firings with observers around them, whose jobs remember the trace."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from uuid import UUID

from django_jobqueue import observers
from django_jobqueue.observers import TRACE, Enqueue, Firing, around_enqueue
from django_jobqueue.store.queue.new_job import NewJob
from django_jobqueue.text.json_reading import read_json


class ObservedFirings:
    """The enqueues of the firings that one statement makes."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._enqueues: list[Enqueue] = []

    def add(
        self,
        new: NewJob,
        id: UUID,
        data: str,
        *,
        schedule: str,
        rule: str,
        time_zone: str,
        fires_at: datetime,
    ) -> NewJob:
        """Return the row of a firing's job, with its trace if somebody observes."""
        if not observers.registered:
            return new
        enqueue = Enqueue(
            job_type=new.job_type,
            queue=new.queue,
            ids=[id],
            size=len(data.encode()),
            firing=Firing(
                schedule=schedule, rule=rule, time_zone=time_zone, fires_at=fires_at
            ),
        )
        trace = self._stack.enter_context(around_enqueue(enqueue))
        self._enqueues.append(enqueue)
        if not trace:
            return new
        metadata = {TRACE: trace, **read_json(new.options.get("metadata") or "{}")}
        return new.but(metadata=json.dumps(metadata))

    def made(self, ids: Collection[UUID | None]) -> None:
        """Only these jobs were made: another host may have made the others."""
        for enqueue in self._enqueues:
            enqueue.ids = [id for id in enqueue.ids if id in ids]


@contextmanager
def observed_firings() -> Iterator[ObservedFirings]:
    """Observe the firings that are made in the block."""
    with ExitStack() as stack:
        yield ObservedFirings(stack)
