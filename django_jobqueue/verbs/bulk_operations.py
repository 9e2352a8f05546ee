"""The verbs of bulk operations."""

from __future__ import annotations

from typing import Final

from django_jobqueue.operations import bulk
from django_jobqueue.verbs.declarations import On, Verb

PAUSE: Final = Verb(
    "pause",
    bulk.pause,
    on=On.BULK_OPERATION,
    right="start_bulkoperation",
    summary="Workers pause after the current chunk.",
    done="paused",
    not_done="Bulk operation {id} is {state}: it cannot be {done}.",
)
RESUME: Final = PAUSE._replace(
    name="resume",
    function=bulk.resume,
    summary="They go on: after a pause, after an error, or if the job is gone.",
    done="resumed",
)
STOP: Final = PAUSE._replace(
    name="stop",
    function=bulk.stop,
    summary=(
        "It ends after the current chunk; finished chunks stay. A draft is discarded."
    ),
    done="stopped",
)
VERBS: Final = {one.name: one for one in (PAUSE, RESUME, STOP)}
