"""Jobs related to one job: replays, followers, its bulk operation, its type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext as _

from django_jobqueue import rooms
from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.parts import display
from django_jobqueue.domain.followers import described
from django_jobqueue.domain.states import ArchivedStatus, QueuedStatus
from django_jobqueue.models import (
    ArchivedJob,
    BulkOperation,
    JobType,
    QueuedJob,
)
from django_jobqueue.models.follower_search import followers_of
from django_jobqueue.text import numbers

MOST_REPLAYS: Final = 20
LATELY: Final = 60  # jobs of the same type


class Dot(NamedTuple):
    """A job of the same type that is over."""

    status: str
    text: str
    url: str  # empty for the job itself, and for who may not see the archive
    is_this: bool = False


def origin(request: HttpRequest, job: Any) -> Any:
    """Links to the job that this one repeats, and to the first of the line."""
    if job.replay_of is None:
        return display.NOTHING
    ids = [job.replay_of]
    if job.root_id is not None and job.root_id != job.replay_of:
        ids.append(job.root_id)
    there = set()
    if may_view(request, ArchivedJob):
        there = set(ArchivedJob.objects.filter(pk__in=ids).values_list("pk", flat=True))
    links = [archived_link(id, is_there=id in there) for id in ids]
    if len(links) == 1:
        return links[0]
    return display.lines(
        [links[0], format_html(_("the first of the line: {}"), links[1])]
    )


def replays(request: HttpRequest, job: Any) -> Any:
    """Links to the jobs that repeat this one, with what became of them."""
    rows = replays_of([job.pk], MOST_REPLAYS)
    if not rows:
        return display.NOTHING
    return display.lines(
        replay_cell(request, id, status, model) for original, id, status, model in rows
    )


def operation(request: HttpRequest, job: Any) -> Any:
    """A link to the bulk operation that made this job."""
    id = job.bulk_operation_id
    if id is None:
        return display.NOTHING
    if not may_view(request, BulkOperation):
        return display.short_id(id)
    return display.link("bulkoperation", id, display.short_id(id))


def lately(request: HttpRequest, job: Any) -> list[Dot]:
    """The last jobs of this type that are over, oldest first; from an index."""
    columns = ("pk", "status", "run_ms", "finished_at")
    rows = (
        ArchivedJob.objects.filter(job_type_id=job.job_type_id)
        .order_by("-finished_at", "-pk")
        .values_list(*columns)[:LATELY]
    )
    sees = may_view(request, ArchivedJob)
    return [_dot(job, sees, *row) for row in reversed(rows)]


def replays_of(ids: Sequence[UUID], limit: int | None = None) -> list[tuple[Any, ...]]:
    """Jobs that repeat these: original, id, status and model name, newest first."""
    columns = ("replay_of", "pk", "status")
    queued = QueuedJob.objects.filter(replay_of__in=ids).order_by()
    archived = ArchivedJob.objects.filter(replay_of__in=ids).order_by()
    both = queued.values_list(*columns).union(archived.values_list(*columns), all=True)
    rows = both.order_by("-pk")
    return [
        (original, id, status, _model_of(status))
        for original, id, status in (rows if limit is None else rows[:limit])
    ]


def replay_cell(request: HttpRequest, id: UUID, status: str, model: str) -> Any:
    """A replay: what it is now, as a link to it."""
    state = display.pill(status, _status_label(status))
    allowed = QueuedJob if model == "queuedjob" else ArchivedJob
    if not may_view(request, allowed):
        return state
    return display.link(model, id, state)


def by_original(rows: Iterable[tuple[Any, ...]]) -> dict[UUID, list[tuple[Any, ...]]]:
    """The replays of each job, newest first."""
    by_id: dict[UUID, list[tuple[Any, ...]]] = {}
    for row in rows:
        by_id.setdefault(row[0], []).append(row)
    return by_id


def facts_of_rooms(request: HttpRequest, metadata: Any) -> list[Fact]:
    """What rooms say of a job with these metadata."""
    facts = (facts(request, metadata) for facts in rooms.offered("job_facts"))
    return [fact for some in facts for fact in some]


def archived_link(id: UUID, *, is_there: bool) -> Any:
    """The short id of an archived job, as a link if it is there."""
    text = display.short_id(id)
    return display.link("archivedjob", id, text) if is_there else text


def _dot(
    job: Any, sees: bool, id: UUID, status: str, run_ms: int | None, finished: Any
) -> Dot:
    parts = [str(_status_label(status)), display.ago(finished)]
    if run_ms is not None:
        parts.insert(1, _("ran %(span)s") % {"span": numbers.duration(run_ms)})
    is_this = id == job.pk
    if is_this:
        parts.append(_("this job"))
    linked = sees and not is_this
    url = display.url_of("archivedjob", id) if linked else ""
    return Dot(status, ", ".join(parts), url, is_this)


def _model_of(status: str) -> str:
    return "queuedjob" if status in QueuedStatus.values else "archivedjob"


def _status_label(status: str) -> Any:
    statuses = QueuedStatus if status in QueuedStatus.values else ArchivedStatus
    return statuses(status).label


Fact = tuple[Any, Any]


def followers(request: HttpRequest, job: Any) -> list[Fact]:
    """The job that this one follows, and those that follow it; most have none."""
    facts: list[Fact] = []
    if job.follows is not None:
        facts.append((_("Follows on"), _archived(request, job.follows)))
    facts += named_followers(request, job.followers)
    if job.followers and isinstance(job, ArchivedJob):
        cells = [_follower(request, row) for row in followers_of(job)]
        facts.append((_("Followed by"), display.lines(cells) or display.NOTHING))
    return facts


def named_followers(request: HttpRequest, followers: Any) -> list[Fact]:
    """The job types of followers, by the option that names them."""
    words = {
        "on_success": _("On success"),
        "on_failure": _("On failure"),
        "on_complete": _("On completion"),
    }
    sees = may_view(request, JobType)
    return [
        (words[option], display.lines(_job_type(name, sees) for name in names))
        for option, names in described(followers)
    ]


def _job_type(name: str, sees: bool) -> Any:
    text = display.breakable(name)
    return display.link("jobtype", name, text) if sees else text


def _archived(request: HttpRequest, id: UUID) -> Any:
    is_there = (
        may_view(request, ArchivedJob) and ArchivedJob.objects.filter(pk=id).exists()
    )
    return archived_link(id, is_there=is_there)


def _follower(request: HttpRequest, row: QueuedJob | ArchivedJob) -> Any:
    """The type of a follower, and its state as a link."""
    model = str(row._meta.model_name)
    cell = replay_cell(request, row.pk, row.status, model)
    return format_html("{} {}", display.visible(row.job_type_id), cell)
