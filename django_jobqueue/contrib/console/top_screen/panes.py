"""The panes of the screen: their columns, their lines, and what can be done with one.

Whatever is done, or shown of a line, is a subcommand of ``jobqueue``: the screen says
which before it runs it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from django.db.models import F

from django_jobqueue.conf import conf
from django_jobqueue.domain.states import QueuedStatus
from django_jobqueue.logs import one_line
from django_jobqueue.management.jobqueue import failure_groups
from django_jobqueue.models import FailureGroup, QueuedJob
from django_jobqueue.stats import current_state
from django_jobqueue.stats.current_state import Present
from django_jobqueue.stats.group_states import STATES
from django_jobqueue.stats.unclaimed_jobs import notices
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import stats
from django_jobqueue.store.reading.claimers import is_alive
from django_jobqueue.store.reading.stats import CAP, Depth, Recent
from django_jobqueue.text import numbers

HOUR: Final = 3_600.0  # seconds
MINUTE: Final = 60.0
MOST_RUNNING: Final = 500  # jobs, those that started first
MOST_GROUPS: Final = 50  # of failures, the newest


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of the job queue at one moment."""

    present: Present
    recent: list[Recent]  # of the last hour
    finished: int  # attempts of the last minute
    failed: int  # of these
    running: list[dict[str, Any]] = field(default_factory=list)
    groups: list[dict[str, Any]] = field(default_factory=list)


def read(*, running: bool, groups: bool) -> Snapshot:
    """Read it, from the caller's connection; running jobs and failure groups only where
    they are wanted."""
    db = DjangoDatabase()
    minute = stats.recent(db, MINUTE)
    return Snapshot(
        present=current_state.read(db),
        recent=stats.recent(db, HOUR),
        finished=sum(row.succeeded + row.failed + row.retried for row in minute),
        failed=sum(row.failed + row.retried for row in minute),
        running=_running_jobs() if running else [],
        groups=_open_groups() if groups else [],
    )


def _running_jobs() -> list[dict[str, Any]]:
    jobs = QueuedJob.objects.using(conf.database).filter(status=QueuedStatus.RUNNING)
    names = ("id", "job_type_id", "queue", "worker_id", "attempts", "started_at")
    oldest = jobs.order_by(F("started_at").asc(nulls_last=True), "pk")
    return list(oldest.values(*names)[:MOST_RUNNING])


def _open_groups() -> list[dict[str, Any]]:
    groups = FailureGroup.objects.using(conf.database).filter(STATES["open"])
    newest = groups.order_by("-last_seen", "-fingerprint")[:MOST_GROUPS]
    rows = failure_groups.with_figures(list(newest))
    return [failure_groups.GROUPS.as_object(row) for row in rows]


NONE: Final = "-"
Command = tuple[str, ...]  # the words behind "jobqueue"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a pane; ``cells`` are what is shown, ``values`` what sorts them."""

    key: str
    cells: Sequence[str]
    values: Sequence[Any]
    details: Sequence[Command] = ()
    actions: Mapping[str, Command] = field(default_factory=dict)  # by the key pressed


class Pane(NamedTuple):
    """A table of the screen."""

    name: str
    titles: Sequence[str]
    lines_of: Callable[[Snapshot], Iterable[Line]]
    sorted_by: int = 0  # a column at the beginning; numbers descend
    needs: str = ""  # a part of the snapshot that is read only for it


def _of_depths(
    snapshot: Snapshot, name_of: Callable[[Any], str], *, queues: bool
) -> Iterator[Line]:
    """What waits, runs and was done of each queue or job type."""
    depths: dict[str, list[Depth]] = defaultdict(list)
    for depth in snapshot.present.depths:
        depths[name_of(depth)].append(depth)
    done, failed = Counter[str](), Counter[str]()
    for recent in snapshot.recent:
        done[name_of(recent)] += recent.succeeded + recent.failed
        failed[name_of(recent)] += recent.failed
    what = "queue" if queues else "job type"
    paused = {one.name for one in snapshot.present.closed if one.what == what}
    for name in sorted({*depths, *done, *paused}):
        of_name = depths[name]
        ready, later, running = (
            sum(getattr(depth, count) for depth in of_name)
            for count in ("ready", "later", "running")
        )
        oldest = max((depth.oldest or 0.0 for depth in of_name), default=0.0)
        state = "paused" if name in paused else ""
        verb = "resume" if name in paused else "pause"
        flags = ("--queue",) if queues else ()
        yield Line(
            key=name,
            cells=(
                name,
                _capped(ready),
                _capped(later),
                numbers.number(running),
                numbers.span(oldest) if oldest else NONE,
                numbers.number(done[name]),
                numbers.number(failed[name]),
                state,
            ),
            values=(
                name,
                ready,
                later,
                running,
                oldest,
                done[name],
                failed[name],
                state,
            ),
            details=() if queues else (("types", "show", *_words(name)),),
            actions={"p": (verb, *flags, *_words(name))},
        )


def _queues(snapshot: Snapshot) -> Iterator[Line]:
    yield from _of_depths(snapshot, lambda row: str(row.queue), queues=True)


def _types(snapshot: Snapshot) -> Iterator[Line]:
    yield from _of_depths(snapshot, lambda row: str(row.job_type), queues=False)


def _workers(snapshot: Snapshot) -> Iterator[Line]:
    for worker in snapshot.present.workers:
        alive = is_alive(worker)
        state = worker.state if alive or worker.end else "lapsed"
        slots = worker.threads + worker.async_slots
        queues = "every" if worker.queues is None else ", ".join(worker.queues)
        verb = "resume" if worker.state == "draining" else "drain"
        has_stacks = alive and not worker.is_remote
        yield Line(
            key=str(worker.id),
            cells=(
                worker.name,
                state,
                numbers.number(worker.running),
                numbers.number(slots),
                numbers.megabytes(worker.rss) if worker.rss else NONE,
                numbers.span(worker.age),
                queues,
            ),
            values=(
                worker.name,
                state,
                worker.running,
                slots,
                worker.rss,
                worker.age,
                queues,
            ),
            details=(("workers", "stacks", str(worker.id)),) if has_stacks else (),
            actions={"d": ("workers", verb, str(worker.id))} if alive else {},
        )


def _running(snapshot: Snapshot) -> Iterator[Line]:
    names = {worker.id: worker.name for worker in snapshot.present.workers}
    for job in snapshot.running:
        id, started = str(job["id"]), job["started_at"]
        ran = (snapshot.present.time - started).total_seconds() if started else 0.0
        worker = names.get(job["worker_id"], str(job["worker_id"] or ""))
        texts = (str(job["job_type_id"]), str(job["queue"]), worker, id)
        attempt = job["attempts"]
        yield Line(
            key=id,
            cells=(numbers.span(max(0.0, ran)), numbers.number(attempt), *texts),
            values=(ran, attempt, *texts),
            details=(("show", id), ("why", id)),
            actions={"c": ("cancel", id, "--yes")},
        )


def _failures(snapshot: Snapshot) -> Iterator[Line]:
    for group in snapshot.groups:
        id, archived = str(group["fingerprint"]), int(group["archived"])
        ago = (snapshot.present.time - group["last_seen"]).total_seconds()
        texts = (group["error_class"], group["message"], ", ".join(group["job_types"]))
        yield Line(
            key=id,
            cells=(
                id[:8],
                numbers.number(archived),
                numbers.number(group["waiting"]),
                numbers.span(max(0.0, ago)),
                *texts,
            ),
            values=(id, archived, group["waiting"], -ago, *texts),
            details=(("failures", "show", id),),
        )


_COUNTS: Final = ("Ready", "Later", "Running", "Oldest", "Done/h", "Failed/h", "State")
PANES: Final = (
    Pane("Queues", ("Queue", *_COUNTS), _queues, 1),
    Pane("Types", ("Job type", *_COUNTS), _types, 1),
    Pane(
        "Workers",
        ("Worker", "State", "Running", "Slots", "Memory", "Age", "Queues"),
        _workers,
    ),
    Pane(
        "Running",
        ("For", "Attempt", "Job type", "Queue", "Worker", "Job"),
        _running,
        needs="running",
    ),
    Pane(
        "Failures",
        ("Group", "Jobs", "Waiting", "Last ago", "Exception", "Message", "Job types"),
        _failures,
        3,
        needs="groups",
    ),
)


def lines(
    pane: Pane, snapshot: Snapshot, *, column: int, reverse: bool, wanted: str
) -> list[Line]:
    """The lines of this pane that contain the wanted text, in order: numbers begin with
    the greatest, texts with the first; or the other way round."""
    matching = [
        line
        for line in pane.lines_of(snapshot)
        if not wanted or any(wanted.lower() in cell.lower() for cell in line.cells)
    ]
    matching.sort(key=lambda line: line.key)
    descends = bool(matching) and not isinstance(matching[0].values[column], str)
    matching.sort(key=lambda line: line.values[column], reverse=descends is not reverse)
    return matching


def warning(snapshot: Snapshot) -> str:
    """What is wrong first of all, as ``jobqueue status`` says it; or nothing."""
    return next((str(notice.message) for notice in notices(snapshot.present)), "")


def header(snapshot: Snapshot) -> str:
    """The figures above the panes, in two lines that fit 80 columns."""
    depths = snapshot.present.depths
    alive = [worker for worker in snapshot.present.workers if is_alive(worker)]
    slots = sum(worker.threads + worker.async_slots for worker in alive)
    oldest = max((depth.oldest or 0.0 for depth in depths), default=0.0)
    now = (
        f"ready {_capped(sum(depth.ready for depth in depths))}",
        f"running {numbers.number(sum(depth.running for depth in depths))}",
        f"later {_capped(sum(depth.later for depth in depths))}",
        f"oldest {numbers.span(oldest) if oldest else NONE}",
        f"workers {numbers.number(len(alive))} ({numbers.number(slots)} slots)",
    )
    ran, failed = map(numbers.number, (snapshot.finished, snapshot.failed))
    return f"{'   '.join(now)}\nlast minute: {ran} attempts, {failed} failed"


def shown(text: str) -> str:
    """A text of a row as the terminal may have it: in one line, without codes."""
    return one_line(text)


def _capped(count: int) -> str:
    return numbers.at_least(count, CAP)


def _words(name: str) -> Command:
    """A name as an argument, even where it looks like an option."""
    return ("--", name) if name.startswith("-") else (name,)
