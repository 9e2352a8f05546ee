"""The verbs that pause job types and queues."""

from __future__ import annotations

from functools import partial
from typing import Final

from django_jobqueue import operations
from django_jobqueue.verbs.declarations import Argument, On, Takes, Verb

PAUSE: Final = Verb(
    "pause",
    operations.pause,
    on=On.JOB_TYPE,
    right="pause_jobtype",
    summary="Pause job types, or queues.",
    done="paused",
    of_one="Stop the claiming of a job type; what runs goes on.",
    arguments=(
        Argument("reason", "Shown with the pause.", default=""),
        Argument("resume_at", "The pause ends by itself", Takes.END),
    ),
    description="""\
Pause job types, or with --queue queues: workers claim none of their jobs, from
the next claim on, across the cluster. Running jobs go on; enqueued jobs wait.

  jobqueue pause shop.send_receipt --for 30m --reason "mail server is down"
  jobqueue pause shop.send_receipt --until 2026-11-20T14:30
  jobqueue pause mail reports --queue""",
)

RESUME: Final = Verb(
    "resume",
    operations.resume,
    on=On.JOB_TYPE,
    right="pause_jobtype",
    summary="Resume paused job types, or queues.",
    done="resumed",
    of_one="Let a job type be claimed again.",
    description="""\
Resume job types, or with --queue queues: their jobs are claimed again at once.

  jobqueue resume shop.send_receipt
  jobqueue resume mail reports --queue""",
)

PAUSE_QUEUE, RESUME_QUEUE = (
    verb._replace(
        function=partial(verb.function, queues=True),
        on=On.QUEUE,
        right="pause_queue",
        of_one=of_one,
    )
    for verb, of_one in (
        (PAUSE, "Stop the claiming from a queue; what runs goes on."),
        (RESUME, "Let a queue be claimed from again."),
    )
)
