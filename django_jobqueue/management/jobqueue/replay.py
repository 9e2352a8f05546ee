"""``jobqueue replay``: enqueue archived jobs again, one or a hundred thousand."""

from __future__ import annotations

from argparse import _ArgumentGroup as Group
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.operation_options import Options
from django_jobqueue.domain.states import (
    ArchivedStatus,
    BulkKind,
    ReplayExpiry,
    SkipReplayed,
)
from django_jobqueue.exceptions import (
    JobNotFound,
    NotReplayable,
    UnknownJobType,
)
from django_jobqueue.management.jobqueue import many_jobs, where
from django_jobqueue.management.jobqueue.by_filter import ByFilter
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.many_jobs import Result
from django_jobqueue.management.jobqueue.queues import warn_of_unknown
from django_jobqueue.management.jobqueue.subcommand import Subcommand, by, positive
from django_jobqueue.management.jobqueue.text_tables import Column
from django_jobqueue.management.jobqueue.time_formats import TIMES, moment
from django_jobqueue.models import ArchivedJob
from django_jobqueue.operations.checks import EXPIRIES, checked_options
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.store.bulk.skips import left_out, skip_reason
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.text import numbers

SKIP_REPLAYED: Final = SkipReplayed.ANY.value
EXPIRES: Final = ReplayExpiry.SAME.value
FILTERS: Final = (
    "--where",
    "--status",
    "--type",
    "--since",
    "--until",
    "--older-than",
    "--error",
    "--group",
)
COLUMNS: Final = (
    Column("Job"),
    Column("Job type", breaks=True),
    Column("Ended ago", right=True),
    Column("Outcome", breaks=True),
)


class Replay(Subcommand):
    """Replays jobs by id or by filter."""

    name = "replay"
    summary = "Enqueue archived jobs again, by id or by filter."
    positionals = "ids"
    description = """\
Enqueue archived jobs again. Each becomes a new job, with a new id and all its
attempts, that remembers the old one; the archive is not changed.

  jobqueue replay 019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11
  jobqueue replay --status failed --type shop.send_receipt --since 2h --dry-run
  jobqueue replay --error ConnectionError --since 2026-11-20T14:00 --yes
  jobqueue replay --where "status:failed data.customer.id:7 ran:>20s"

By id, it prints which job became which. By filter, it takes the failed jobs
that match (see --status), the oldest first: a bulk operation, as in the admin,
that this command runs chunk by chunk, each a transaction of its own. After
Ctrl-C workers do the others. With --where it takes jobs of each status that
the admin would show.

Jobs that were replayed before are left out (see --again), and so are those of
at-most-once types (see --at-most-once). So it can be interrupted, and started
again."""
    epilog = many_jobs.JSON_KEYS

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what is to be replayed, and how."""
        many_jobs.add_arguments(parser)
        _add_filter(parser.add_argument_group("filter"))
        add_skips(parser.add_argument_group("what is left out"))
        add_how(parser.add_argument_group("the new jobs"))

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Replay them, or show what it would be."""
        ids, filters = many_jobs.ids_or_filter(options, FILTERS)
        if ids and options["limit"]:
            raise CommandError("--limit goes with a filter, not with ids.")
        if options["queue"] is not None:
            warn_of_unknown(console, [options["queue"]])
        now = database_now()
        if ids:
            _by_id(console, options, ids, now)
        else:
            selection, limit = _selection(filters, now), options["limit"]
            replay_selected(console, options, selection, now, limit=limit)


def _add_filter(group: Group) -> None:
    where.add_arguments(group, FILTERS)
    group.add_argument(
        "--status",
        action="append",
        choices=ArchivedStatus.values,
        help="Jobs of this status; may be given again (default: failed; with --where: "
        "every).",
    )
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
        "--limit", type=positive, metavar="N", help="Replay at most N jobs."
    )


def add_skips(group: Group) -> None:
    """Add which jobs a replay leaves out."""
    group.add_argument(
        "--skip-replayed",
        choices=[str(name) for name in SkipReplayed],
        default=SKIP_REPLAYED,
        help="Of the jobs that were replayed before, leave out any, or only those "
        "whose replay succeeded, or none (default: any).",
    )
    group.add_argument(
        "--again",
        dest="skip_replayed",
        action="store_const",
        const=SkipReplayed.NONE.value,
        help="Also jobs that were replayed before: --skip-replayed none.",
    )
    group.add_argument(
        "--at-most-once",
        action="store_true",
        help="Also jobs of at-most-once types, which may have run.",
    )


def add_how(group: Group) -> None:
    """Add what the new jobs have."""
    group.add_argument(
        "--expires",
        choices=[str(name) for name in EXPIRIES],
        default=EXPIRES,
        help="same gives the same time to live from when it is due; keep copies the "
        "old time, so that an expired job expires again; never (default: same).",
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
        help="From -100 to 100, higher runs first; instead of the old one.",
    )


def _by_id(
    console: Console, options: dict[str, Any], ids: list[UUID], now: datetime
) -> None:
    how = _how(options, now)
    chosen = checked_options(Options(), **how)
    why = left_out(DjangoDatabase(), BulkKind.REPLAY, ids, chosen)
    archive = ArchivedJob.objects.using(conf.database).filter(pk__in=ids)
    archived = list(archive.exclude(pk__in=why).order_by("finished_at", "pk"))
    made: Mapping[UUID, UUID] = {}
    if options["dry_run"]:
        done = [job.pk for job in archived]
    else:
        past = sum(
            job.expires_at is not None and job.expires_at <= now for job in archived
        )
        _warn_of_expiry(console, options, past)
        jobs = counted(len(archived), "job")
        many_jobs.make_sure(console, options, len(archived), jobs, "replayed")
        made = operations.replay_many(ids, by=by(), **how)
        done, why = list(made), dict(made.left_out)
    result = Result(
        verb="replay",
        dry_run=options["dry_run"],
        count=len(done),
        ids=done,
        replays=made,
        problems=[_why_not(id, why.get(id)) for id in ids if id not in done],
    )
    _tell(console, options, result, archived, now)
    many_jobs.refuse(result.problems)


def replay_selected(
    console: Console,
    options: dict[str, Any],
    selection: Selection,
    now: datetime,
    **more: Any,
) -> None:
    """Replay these jobs, or show what it would be; ``more`` are further options of the
    operation. Raises CommandError."""
    how = {**_how(options, now), **more}
    with ByFilter(console, BulkKind.REPLAY, selection, **how) as chosen:
        if options["dry_run"]:
            archive = ArchivedJob.objects.using(conf.database)
            jobs = archive.filter(pk__in=chosen.examples).order_by("finished_at", "pk")
            _tell(console, options, chosen.preview(), jobs, now)
        _warn(console, options, chosen)
        if not options["dry_run"]:
            chosen.go(options)
        if not chosen.total and (before := chosen.skipped["replayed"]):
            text = f"Of those that match, {many_jobs.were(before, 'replayed')} before"
            console.warn(f"{text}; --again takes them, too.")


def _how(options: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The options of the replay, as the operations have them."""
    when = options["run_after"]
    return {
        "run_after": when and moment("--run-after", when, now=now),
        "expires": options["expires"],
        "queue": options["queue"],
        "priority": options["priority"],
        "skip_replayed": options["skip_replayed"],
        "skip_at_most_once": not options["at_most_once"],
    }


def _selection(filters: dict[str, Any], now: datetime) -> Selection:
    given = filters.get("status") or ()
    if not given and "where" not in filters:
        given = (ArchivedStatus.FAILED,)
    terms = []
    if statuses := tuple(dict.fromkeys(given)):
        one = len(statuses) == 1  # an index serves that
        terms.append(Term("status", statuses[0]) if one else Term("statuses", statuses))
    if "error" in filters:
        terms.append(Term("error", filters["error"]))
    for name, operator in (("since", ">="), ("until", "<")):
        if name in filters:
            when = moment(f"--{name}", filters[name], now=now, ago=True)
            terms.append(Term("finished", when, operator))
    return where.selection(Table.ARCHIVED, filters, now, *terms)


def _tell(
    console: Console,
    options: dict[str, Any],
    result: Result,
    examples: Iterable[ArchivedJob],
    now: datetime,
) -> None:
    if many_jobs.is_json(options):
        result.print(console)
        return
    for old, new in result.replays.items():
        console.print(f"{old} was replayed as {new}")
    if not result.dry_run:
        return
    console.print(f"{counted(result.count, 'job')} would be replayed.")
    rows = (
        [
            str(job.pk),
            job.job_type_id,
            numbers.span((now - job.finished_at).total_seconds()),
            job.error_class or job.status,
        ]
        for job in examples
    )
    many_jobs.show_examples(console, COLUMNS, rows)


def _warn(console: Console, options: dict[str, Any], chosen: ByFilter) -> None:
    if gone := chosen.skipped["type_gone"]:
        more = counted(gone, "more job")
        console.warn(f"{more} cannot be replayed, because the job type is gone.")
    if once := chosen.skipped["at_most_once"]:
        were = many_jobs.were(once, "skipped")
        console.warn(
            f"{were}: of an at-most-once type; --at-most-once takes them, too."
        )
    cells = chosen.draft.counted.cells.items()
    past = sum(
        number
        for traits, number in cells
        if "expired" in traits.split()[1:]  # the first one is the status
        and not skip_reason(BulkKind.REPLAY, traits, chosen.draft.options)
    )
    _warn_of_expiry(console, options, min(past, chosen.total))


def _warn_of_expiry(console: Console, options: dict[str, Any], past: int) -> None:
    if past and options["expires"] == ReplayExpiry.KEEP:
        console.warn(
            f"{counted(past, 'job')} will expire again at once; say --expires same or "
            "--expires never if that is not wanted."
        )


def _why_not(id: UUID, reason: str | None) -> str:
    """Why this job could not be replayed."""
    if reason == "replayed":
        return f"Job {id} was replayed before; --again replays it again."
    if reason == "at_most_once":
        return (
            f"Job {id} is of an at-most-once type, and may have run; --at-most-once "
            "replays it."
        )
    if reason == "erased":
        return str(NotReplayable(id, reason))
    try:
        job = operations.get_job(id)
    except JobNotFound as missing:
        return str(missing)
    if not job.is_over:
        return str(NotReplayable(id, job.status))
    return f"Job {id}: {UnknownJobType(job.job_type)}"
