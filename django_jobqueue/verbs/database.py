"""The verbs of a whole database: whether hosts work in it."""

from __future__ import annotations

from typing import Final

from django_jobqueue import operations
from django_jobqueue.verbs.declarations import On, Verb

SLEEP: Final = Verb(
    "sleep",
    operations.put_to_sleep,
    on=On.DATABASE,
    right="",
    summary="Keep hosts idle in this database.",
    done="Hosts that start do nothing here until jobqueue wake.",
    audit="put to sleep",
    description="""\
Keep hosts that start in this database idle until jobqueue wake: they run no
job, fire no schedule, and delete nothing. Enqueued jobs wait.

A dump that is restored sleeps by itself. This is for copies of the server's
files: snapshots, clones, branches. Run it before you start workers there.

  jobqueue sleep""",
)
WAKE: Final = Verb(
    "wake",
    operations.wake,
    on=On.DATABASE,
    right="",
    summary="Let hosts work in a restored or upgraded database.",
    done="Hosts work in this database from now on.",
    not_done="Hosts may already work in this database.",
    description="""\
Let hosts work in this database from now on: after a restore in the place of
the original, after pg_upgrade, or in a copy whose jobs and schedules must run,
too.

Waiting hosts begin within five seconds.

  jobqueue wake""",
)
