"""``jobqueue replay``: enqueue archived jobs again, one or a hundred thousand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.operation_options import Options as BulkOptions
from django_jobqueue.domain.states import (
    ArchivedStatus,
    BulkKind,
    ReplayExpiry,
    SkipReplayed,
)
from django_jobqueue.exceptions import JobNotFound, NotReplayable, UnknownJobType
from django_jobqueue.management.jobqueue import many_jobs, where
from django_jobqueue.management.jobqueue.console import Console, counted, were
from django_jobqueue.management.jobqueue.inputs import moment, warn_of_unknown
from django_jobqueue.management.jobqueue.many_jobs import ByFilter, Result
from django_jobqueue.management.jobqueue.subcommand import Options, VerbCommand, by
from django_jobqueue.models import ArchivedJob
from django_jobqueue.operations.checks import checked_options
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.store.bulk.skips import left_out, skip_reason
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.text.durations import TIMES
from django_jobqueue.verbs.columns import SPAN, TEXT, Column, Listing
from django_jobqueue.verbs.declarations import Argument, Takes, group
from django_jobqueue.verbs.jobs import REPLAY

FILTERS: Final = (
    Argument(
        "status",
        "Jobs of this status; may be given again (default: failed; with --where: "
        "every).",
        choices=ArchivedStatus.values,
        is_list=True,
    ),
    Argument(
        "since",
        f"Jobs that ended then or later: {TIMES}. A duration is back from now.",
        Takes.MOMENT,
    ),
    Argument(
        "until", "Jobs that ended before this; written like --since.", Takes.MOMENT
    ),
    Argument(
        "error",
        "Jobs archived with this exception; its module may be left out.",
        "CLASS",
    ),
    Argument("limit", "Replay at most N jobs.", Takes.POSITIVE),
)


class Replay(VerbCommand):
    json = many_jobs.JSON
    arguments = (
        *many_jobs.ARGUMENTS,
        *where.filters(REPLAY.filters),
        *group("filter", FILTERS),
        *REPLAY.arguments,
    )

    def run(self, console: Console, options: Options) -> None:
        ids, filters = many_jobs.ids_or_filter(options, REPLAY.filters)
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


def _by_id(console: Console, options: Options, ids: list[UUID], now: datetime) -> None:
    how = _how(options, now)
    chosen = checked_options(BulkOptions(), **how)
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
    _answer(console, result, archived, now)
    many_jobs.refuse(result.problems)


def replay_selected(
    console: Console, options: Options, selection: Selection, now: datetime, **more: Any
) -> None:
    """Replay these jobs, or show what it would be; ``more`` are further options of the
    operation. Raises CommandError."""
    how = {**_how(options, now), **more}
    with ByFilter(console, REPLAY, selection, **how) as chosen:
        if options["dry_run"]:
            archive = ArchivedJob.objects.using(conf.database)
            jobs = archive.filter(pk__in=chosen.examples).order_by("finished_at", "pk")
            _answer(console, chosen.preview(), jobs, now)
        _warn(console, options, chosen)
        if not options["dry_run"]:
            chosen.go(options)
        if not chosen.total and (before := chosen.skipped["replayed"]):
            text = f"Of those that match, {were(before, 'job', 'replayed')} before"
            console.warn(f"{text}; --again takes them, too.")


def _how(options: Options, now: datetime) -> dict[str, Any]:
    """The options of the replay, as the operations have them."""
    when = options["run_after"]
    return {
        "run_after": when and moment("--run-after", when, now=now),
        "expires": options["expires"],
        "queue": options["queue"],
        "priority": options["priority"],
        "skip_replayed": (
            SkipReplayed.NONE.value if options["again"] else options["skip_replayed"]
        ),
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


def _answer(
    console: Console, result: Result, examples: Iterable[ArchivedJob], now: datetime
) -> None:
    if console.is_json:
        result.print(console)
        return
    for old, new in result.replays.items():
        console.print(f"{old} was replayed as {new}")
    if result.dry_run:
        console.print(f"{counted(result.count, 'job')} would be replayed.")
        many_jobs.show_examples(console, _listing(now), examples)


def _listing(now: datetime) -> Listing:
    """The columns of archived jobs."""
    return Listing(
        (
            Column("pk", "Job"),
            Column("job_type_id", "Job type", breaks=True),
            Column(
                "",
                "Ended ago",
                SPAN,
                lambda job: (now - job.finished_at).total_seconds(),
            ),
            Column(
                "",
                "Outcome",
                TEXT,
                lambda job: job.error_class or job.status,
                breaks=True,
            ),
        )
    )


def _warn(console: Console, options: Options, chosen: ByFilter) -> None:
    if gone := chosen.skipped["type_gone"]:
        more = counted(gone, "more job")
        console.warn(f"{more} cannot be replayed, because the job type is gone.")
    if once := chosen.skipped["at_most_once"]:
        skipped = were(once, "job", "skipped")
        console.warn(
            f"{skipped}: of an at-most-once type; --at-most-once takes them, too."
        )
    cells = chosen.draft.counted.cells.items()
    past = sum(
        number
        for traits, number in cells
        if "expired" in traits.split()[1:]  # the first one is the status
        and not skip_reason(BulkKind.REPLAY, traits, chosen.draft.options)
    )
    _warn_of_expiry(console, options, min(past, chosen.total))


def _warn_of_expiry(console: Console, options: Options, past: int) -> None:
    if past and options["expires"] == ReplayExpiry.KEEP:
        console.warn(
            f"{counted(past, 'job')} will expire again at once; pass --expires same or "
            "--expires never to avoid that."
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


COMMAND: Final = Replay(REPLAY)
