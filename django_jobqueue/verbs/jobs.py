"""The verbs of jobs, by id or by filter."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django_jobqueue import operations
from django_jobqueue.domain.states import (
    BulkKind,
    QueuedStatus,
    ReplayExpiry,
    SkipReplayed,
)
from django_jobqueue.operations.checks import EXPIRIES
from django_jobqueue.search.selection import Term
from django_jobqueue.store.control.cancel import Cancelled
from django_jobqueue.store.control.prune import BATCH
from django_jobqueue.text.durations import TIMES
from django_jobqueue.verbs.declarations import Argument, On, Takes, Verb, flag, group


def changed_ids(done: Any) -> list[UUID]:
    """The jobs to which it was done, by what the function of a verb returned."""
    if isinstance(done, Cancelled):
        return [*done.archived, *done.asked]
    return [getattr(one, "id", one) for one in done]


FILTERS: Final = ("where", "type", "queue", "older_than", "group")
WAITING: Final = (Term("statuses", (QueuedStatus.QUEUED,)),)
ONLY_WAITING: Final = "is {status}; only a waiting job can be changed."
PRIORITY: Final = Argument(
    "priority", "From -100 to 100; higher runs first.", Takes.NUMBER
)

CANCEL: Final = Verb(
    "cancel",
    operations.cancel,
    on=On.QUEUED_JOB,
    right="cancel_queuedjob",
    summary="Cancel queued and running jobs, by id or by filter.",
    done="cancelled",
    doing="Cancelling",
    arguments=(
        Argument("reason", "Kept with the jobs in the archive.", default=""),
        Argument(
            "status",
            "Only queued, or only running, jobs (default: both).",
            choices=QueuedStatus.values,
            group="filter",
        ),
    ),
    not_done="was {status} too late to be cancelled; try again.",
    bulk=BulkKind.CANCEL,
    filters=("where", "type", "queue", "status", "older_than", "group"),
    of_one="Cancel a waiting job, or ask a running one to stop.",
    description="""\
Cancel jobs. Queued ones are archived as cancelled at once; running ones are
asked to stop, and archived as cancelled when they do.

  jobqueue cancel 019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11 --reason "wrong order"
  jobqueue cancel --type shop.send_receipt --status queued --dry-run
  jobqueue cancel --where "state:retrying error:Timeout data.customer.id:7"

By filter, it is a bulk operation, as in the admin, that this command
runs: it takes the jobs that exist when it starts, chunk by chunk, each a
transaction of its own. After Ctrl-C workers finish it. A cancelled job can be
replayed.""",
)

RUN_NOW: Final = Verb(
    "run-now",
    operations.run_now,
    on=On.QUEUED_JOB,
    right="reschedule_queuedjob",
    summary="Let waiting jobs run now, by id or by filter.",
    done="made due",
    doing="Moving",
    audit="run now",
    not_done=ONLY_WAITING,
    bulk=BulkKind.RUN_NOW,
    applies=WAITING,
    filters=FILTERS,
    of_one="Let a waiting job run now.",
    description="""\
Let jobs that wait for their time, or for their next attempt, run now. Attempts
and expiry stay as they are.

  jobqueue run-now 019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11
  jobqueue run-now --where "state:retrying error:ConnectionError" --dry-run

By filter, it is a bulk operation, as in the admin, that this command runs.""",
)

RESCHEDULE: Final = Verb(
    "reschedule",
    operations.reschedule,
    on=On.QUEUED_JOB,
    right="reschedule_queuedjob",
    summary="Change time, priority or queue of waiting jobs.",
    done="rescheduled",
    doing="Rescheduling",
    arguments=(
        Argument(
            "run_after",
            f"Not before this: {TIMES}. A duration is from now.",
            Takes.MOMENT,
            group="what is changed",
        ),
        PRIORITY._replace(group="what is changed"),
        Argument("queue", "Their new queue.", group="what is changed"),
    ),
    needs="Give --run-after, --priority or --queue.",
    not_done=ONLY_WAITING,
    bulk=BulkKind.RESCHEDULE,
    applies=WAITING,
    filters=("where", "type", "older_than", "group"),
    description="""\
Change time, priority or queue of waiting jobs.

  jobqueue reschedule 019a9f5e7c3b --run-after 2h
  jobqueue reschedule --where "queue:mail state:ready" --priority -5

By filter, it is a bulk operation, as in the admin, that this command runs.
Jobs that would expire before their new time are skipped.""",
)

FAIL: Final = Verb(
    "fail",
    operations.fail,
    on=On.QUEUED_JOB,
    right="cancel_queuedjob",
    summary="Archive waiting jobs as failed, by id or by filter.",
    done="failed",
    doing="Failing",
    arguments=(Argument("reason", "Stored as the jobs' error."),),
    needs="Say why: --reason.",
    not_done=ONLY_WAITING,
    applies=WAITING,
    filters=FILTERS,
    of_one="Archive a waiting job as failed.",
    description="""\
Archive waiting jobs as failed, even with attempts left. Running jobs are left
alone: cancel them.

  jobqueue fail 019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11 --reason "no such order"
  jobqueue fail --where "attempts:>10 error:Declined" --reason "given up"

By filter, it takes the jobs that wait when it starts, 1,000 in a transaction. A
failed job can be replayed.""",
)

REPLAY_SKIPS: Final = group(
    "what is left out",
    (
        Argument(
            "skip_replayed",
            "Of the jobs that were replayed before, leave out any, or only those whose "
            "replay succeeded, or none (default: any).",
            default=SkipReplayed.ANY.value,
            choices=tuple(SkipReplayed),
        ),
        flag("again", "Also jobs that were replayed before: --skip-replayed none."),
        flag("at_most_once", "Also jobs of at-most-once types, which may have run."),
    ),
)
REPLAY_HOW: Final = group(
    "the new jobs",
    (
        Argument(
            "expires",
            "same gives the same time to live from when it is due; keep copies the old "
            "time, so that an expired job expires again; never (default: same).",
            default=ReplayExpiry.SAME.value,
            choices=EXPIRIES,
        ),
        Argument(
            "run_after",
            "Not before this; a duration is from now (default: now).",
            Takes.MOMENT,
        ),
        Argument("queue", "Their queue, instead of the old one."),
        Argument(
            "priority",
            "From -100 to 100, higher runs first; instead of the old one.",
            Takes.NUMBER,
        ),
    ),
)

REPLAY: Final = Verb(
    "replay",
    operations.replay_many,
    on=On.ARCHIVED_JOB,
    right="replay_archivedjob",
    summary="Enqueue archived jobs again, by id or by filter.",
    done="replayed",
    doing="Replaying",
    arguments=(*REPLAY_SKIPS, *REPLAY_HOW),
    bulk=BulkKind.REPLAY,
    filters=(
        "where",
        "status",
        "type",
        "since",
        "until",
        "older_than",
        "error",
        "group",
    ),
    description="""\
Enqueue archived jobs again. Each becomes a new job, with a new id and all its
attempts, that remembers the old one; the archive is not changed.

  jobqueue replay 019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11
  jobqueue replay --status failed --type shop.send_receipt --since 2h --dry-run
  jobqueue replay --error ConnectionError --since 2026-11-20T14:00 --yes
  jobqueue replay --where "status:failed data.customer.id:7 ran:>20s"

By id, it prints which job became which. By filter, it takes the failed jobs
that match (see --status), the oldest first: a bulk operation, as in the admin,
that this command runs chunk by chunk, each a transaction of its own. After
Ctrl-C workers finish it. With --where it takes jobs of each status that the
admin would show.

Jobs that were replayed before are left out (see --again), and so are those of
at-most-once types (see --at-most-once). So you can interrupt and repeat it.""",
)

PRUNE: Final = Verb(
    "prune",
    operations.prune_jobs,
    on=On.ARCHIVED_JOB,
    right="prune_archivedjob",
    summary="Delete archived jobs that are old enough.",
    done="deleted",
    doing="Deleting",
    bulk=BulkKind.PRUNE,
    filters=("where", "type", "older_than"),
    description=f"""\
Delete archived jobs that are old enough, with the records of their failures.

Without --older-than the retention in force decides: JOBQUEUE['RETENTION'], and
overrides of job types. Workers prune by it, too; this command is for archives
without workers, and for other ages:

  jobqueue prune --dry-run
  jobqueue prune --status succeeded --older-than 30d --batch-pause 0.5

With --where it deletes the jobs that the admin's search finds, whatever their
age: a bulk operation, as in the admin, that this command runs.

It looks at {BATCH:,} jobs at a time, each time in a transaction of its
own. Ctrl-C ends it between two of them.""",
)

RELEASE: Final = Verb(
    "release",
    operations.release,
    on=On.QUEUED_JOB,
    right="release_queuedjob",
    summary="Take running jobs from dead workers.",
    done="released",
    doing="Releasing",
    not_done="is {status}; only a job whose worker is dead can be released. Cancel it "
    "instead.",
    applies=(Term("state", "lapsed"),),
    filters=FILTERS,
    of_one="Take a running job from a dead worker.",
    description="""\
Take running jobs from dead workers at once, before a living host rescues them.
They wait again, with one more crash; those of at-most-once types are archived
as failed. Jobs of living workers are left alone. Jobs that a killed jobqueue
move holds must be named by id: they wait again as they were.

  jobqueue release 019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11
  jobqueue release --where state:lapsed""",
)
