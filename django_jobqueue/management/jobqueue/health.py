"""``jobqueue health``: whether the job queue works, for monitoring systems."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandError
from django.db import Error as DatabaseError

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import JobQueueError
from django_jobqueue.management.jobqueue import health_check
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.database import check
from django_jobqueue.management.jobqueue.health_check import CANNOT_TELL
from django_jobqueue.management.jobqueue.subcommand import FORMAT, Subcommand
from django_jobqueue.verbs.declarations import group


class HealthCheck(Subcommand):
    """Compares the job queue with thresholds; the exit code is the answer."""

    name = "health"
    summary = "Check the queue against thresholds, for monitoring."
    description = """\
Say whether the job queue is healthy: enough workers, no job that has waited for
too long, few failures and crashes. Nagios, Icinga, Zabbix, cron and others
understand the exit code; the first line has a text and the figures.

  0  healthy
  2  not healthy: the line says what is wrong
  3  it cannot be told: the database does not answer, a migration is missing,
     or the command line is wrong

Jobs of paused queues and job types are left out. It loads your whole project,
which takes a moment: for a probe every few seconds, use the /readyz and
/healthz that runworkers --metrics-port answers, or HEARTBEAT_FILE."""
    epilog = """\
--format json prints one object:

  status    ok, critical or unknown
  problems  list of {code, message, queue, job_type}; the codes are few_workers,
            old_job, many_ready, many_failed and many_crashes
  figures   list of {name, of, value, unit, limit}; the names are workers,
            oldest and ready, of a queue or of all (null), and failed and
            crashes, of a job type; the limit of workers is a lower one
  error     why it is unknown"""
    reads_jobs = False  # it is said here if they cannot be read
    wrong_use = CANNOT_TELL

    arguments = (
        FORMAT._replace(
            help="text is for people and Nagios, json for programs (default: text)."
        ),
        *group("thresholds", health_check.THRESHOLDS),
    )

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Print it, and exit with its code."""
        wanted = health_check.wanted(options)
        try:
            check(conf.database)
            judged = health_check.read(wanted)
        except (CommandError, DatabaseError, JobQueueError) as error:
            health_check.cannot_tell(console, error)
        if console.is_json:
            console.json(health_check.as_object(judged), ascii=True)
        else:
            console.print(health_check.first_line(judged))
            for problem in judged.problems[health_check.MOST :]:
                console.print(problem.message)
        console.stdout.flush()
        sys.exit(health_check.exit_code(judged))
