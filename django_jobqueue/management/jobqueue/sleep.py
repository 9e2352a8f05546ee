"""``jobqueue sleep`` and ``jobqueue wake``: whether hosts work in this database."""

from __future__ import annotations

from django_jobqueue import operations
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.subcommand import Options, Subcommand, by


class Sleep(Subcommand):
    name = "sleep"
    summary = "Have hosts that start do nothing in this database."
    description = """\
Have hosts that start in this database do nothing until jobqueue wake: they run
no job, fire no schedule, and delete nothing. What is enqueued waits.

A dump that is restored sleeps by itself. This is for copies of the server's
files: snapshots, clones, branches. Run it before you start workers there.

  jobqueue sleep"""

    def run(self, console: Console, options: Options) -> None:
        operations.put_to_sleep(by=by())
        console.info("Hosts that start do nothing here until jobqueue wake.")


class Wake(Subcommand):
    name = "wake"
    summary = "Let hosts work in a restored or upgraded database."
    description = """\
Let hosts work in this database from now on: after a restore in the place of
the original, after pg_upgrade, or in a copy whose jobs and schedules are to run
there, too.

Hosts that wait for it begin within five seconds.

  jobqueue wake"""

    def run(self, console: Console, options: Options) -> None:
        if operations.wake(by=by()):
            console.info("Hosts work in this database from now on.")
        else:
            console.info("Hosts may work in this database already.")
