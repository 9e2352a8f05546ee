"""``jobqueue replay``: enqueue archived jobs again, one or a hundred thousand."""

from __future__ import annotations

from argparse import _ArgumentGroup as Group
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError, CommandParser
from django.db.models import BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.states import ArchivedStatus, ReplayExpiry
from django_jobqueue.exceptions import (
    JobNotFound,
    NotReplayable,
    UnknownJobType,
)
from django_jobqueue.management.jobqueue import bulk
from django_jobqueue.management.jobqueue.batches import BATCH
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.failure_groups import key_of
from django_jobqueue.management.jobqueue.queues import warn_of_unknown
from django_jobqueue.management.jobqueue.replaying import Replaying
from django_jobqueue.management.jobqueue.subcommand import Subcommand, positive
from django_jobqueue.management.jobqueue.times import TIMES, moment
from django_jobqueue.models import ArchivedJob
from django_jobqueue.operations.checks import EXPIRIES
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.stats.clock import database_now
from django_jobqueue.store.selection import condition

FILTERS: Final = ("--status", "--type", "--since", "--until", "--error", "--group")


class Replay(Subcommand):
    """Replays jobs by id or by filter."""

    name = "replay"
    summary = "Enqueue archived jobs again, by id or by filter."
    rest = "ids"
    description = f"""\
Enqueue archived jobs again. Each becomes a new job, with a new id and all its
attempts, that remembers the old one; the archive is not changed.

  jobqueue replay 019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11
  jobqueue replay --status failed --type shop.send_receipt --since 2h --dry-run
  jobqueue replay --error ConnectionError --since 2026-11-20T14:00 --yes

By id, it prints which job became which. By filter, it takes the failed jobs
that match, the oldest first, and not those that were replayed before (see
--status and --again), nor those of at-most-once types (see --at-most-once); so
it can be interrupted and started again. It goes in chunks of {BATCH:,}, each a
transaction of its own."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what is to be replayed, and how."""
        bulk.add_arguments(parser)
        _add_filter(parser.add_argument_group("filter"))
        _add_how(parser.add_argument_group("the new jobs"))

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Replay them, or show what it would be."""
        ids, filters = bulk.ids_or_filter(options, FILTERS)
        if ids and (options["limit"] or options["again"] or options["at_most_once"]):
            raise CommandError(
                "--limit, --again and --at-most-once go with a filter, not with ids."
            )
        if options["queue"] is not None:
            warn_of_unknown(console, [options["queue"]])
        now = database_now()
        if ids:
            jobs = ArchivedJob.objects.using(conf.database).filter(pk__in=ids)
        else:
            jobs = _matching(filters, options["again"], now)
        replaying = Replaying(console, options, jobs, now)
        if options["dry_run"]:
            replaying.show()
        else:
            replaying.go()
        if filters and not replaying.total and not options["again"]:
            fresh = _matching(filters, False, now).count()
            _say_of_earlier(console, _matching(filters, True, now).count() - fresh)
        bulk.refuse(_why_not(id) for id in ids if id not in replaying.named)


def _add_filter(group: Group) -> None:
    group.add_argument(
        "--status",
        action="append",
        choices=ArchivedStatus.values,
        help="Jobs of this status; may be given again (default: failed).",
    )
    group.add_argument("--type", metavar="TYPE", help="Jobs of this type.")
    group.add_argument(
        "--since",
        metavar="WHEN",
        help=f"Jobs that ended then or later: {TIMES}. A duration is back from now.",
    )
    group.add_argument(
        "--until",
        metavar="WHEN",
        help="Jobs that ended before this; written like --since.",
    )
    group.add_argument(
        "--error",
        metavar="CLASS",
        help="Jobs archived with this exception; its module may be left out.",
    )
    group.add_argument(
        "--group",
        metavar="GROUP",
        help="Jobs of this failure group: its fingerprint, or the beginning of it.",
    )
    group.add_argument("--limit", type=positive, metavar="N", help="At most so many.")
    group.add_argument(
        "--again", action="store_true", help="Also jobs that were replayed before."
    )
    group.add_argument(
        "--at-most-once",
        action="store_true",
        help="Also jobs of at-most-once types, which may have run.",
    )


def _add_how(group: Group) -> None:
    group.add_argument(
        "--expires",
        choices=[str(name) for name in EXPIRIES],
        default=ReplayExpiry.SAME.value,
        help="same gives the same time to live from when it is due; keep copies the "
        "moment, so that an expired job expires again; never (default: same).",
    )
    group.add_argument(
        "--run-after",
        metavar="WHEN",
        help="Not before this; a duration is from now (default: now).",
    )
    group.add_argument("--queue", help="Their queue, instead of the old one.")
    group.add_argument(
        "--priority",
        type=int,
        help="From -100 to 100, greater is sooner; instead of the old one.",
    )


def _matching(
    filters: dict[str, Any], again: bool, now: datetime
) -> QuerySet[ArchivedJob]:
    bulk.check_job_type(filters.get("type"))
    statuses = filters.get("status") or [ArchivedStatus.FAILED]
    # What ends from now on stays out: a replayed job may fail again meanwhile.
    until = now
    if "until" in filters:
        until = min(now, moment("--until", filters["until"], now=now, ago=True))
    chosen = Q(status__in=statuses, finished_at__lt=until)
    if "since" in filters:
        since = moment("--since", filters["since"], now=now, ago=True)
        chosen &= Q(finished_at__gte=since)
    if "type" in filters:
        chosen &= Q(job_type=filters["type"])
    if error := filters.get("error"):
        chosen &= Q(error_class=error) | Q(error_class__endswith=f".{error}")
    if group := filters.get("group"):
        chosen &= Q(fingerprint=key_of(group))
    jobs = ArchivedJob.objects.using(conf.database).filter(chosen)
    if again:
        return jobs
    replayed = condition(Selection(Table.ARCHIVED, (Term("replayed", False),)), str)
    return jobs.filter(RawSQL(replayed, [], output_field=BooleanField()))


def _say_of_earlier(console: Console, count: int) -> None:
    if count:
        text = f"Of those that match, {bulk.were(count, 'replayed')} before"
        console.warn(f"{text}; --again takes them, too.")


def _why_not(id: UUID) -> str:
    """Why this job could not be replayed."""
    try:
        job = operations.get_job(id)
    except JobNotFound as missing:
        return str(missing)
    if not job.is_over:
        return str(NotReplayable(id, job.status))
    return f"Job {id}: {UnknownJobType(job.job_type)}"
