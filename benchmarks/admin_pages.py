"""The admin's pages that are measured, and what each may take and weigh."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import md5
from typing import Any
from urllib.parse import urlencode, urlsplit
from uuid import UUID

from benchmarks.admin_rows import LARGE, USUAL_TYPES

HERE = "/admin/jobqueue/"
LIST, OVERVIEW, TRIAGE, DETAIL = 200, 150, 300, 50  # milliseconds, at most
DATA, DRAFT = 150, 200
MANY_TYPES = 300  # of any page, where there are more job types than usual
LARGEST = 150  # kB of a page
REFRESHED = 30  # kB of a refresh of a page where little happens
COMMON = "shop.job_3"


@dataclass(frozen=True, slots=True)
class Page:
    """A request, the milliseconds that 95 of 100 may take, and the kB of the answer."""

    name: str
    address: str
    limit: int
    largest: int = LARGEST
    form: dict[str, Any] = field(default_factory=dict)  # of a POST
    is_refresh: bool = False  # of a page that is open already
    is_uncached: bool = False


def pages(types: int) -> list[Page]:
    """All that is measured; a part of the admin has a function of its own below."""
    found = [
        *_archive(f"shop.job_{types}"),
        *_queued(),
        *_details(),
        *_triage(f"shop.job_{types}"),
        *_others(),
    ]
    if types > USUAL_TYPES:
        found = [replace(page, limit=max(page.limit, MANY_TYPES)) for page in found]
    return [*found, *_refreshes(found), *_large(), *_drafts(), *_overview()]


def _refreshes(found: list[Page]) -> Iterator[Page]:
    """Of the first page of each part: the open page asks for what changed."""
    parts: dict[str, Page] = {}
    for page in found:
        parts.setdefault(_part(page.address), page)
    for page in parts.values():
        yield replace(
            page, name=f"refresh of {page.name}", largest=REFRESHED, is_refresh=True
        )


def _part(address: str) -> str:
    """The model, and whether it is a list or the page of an object."""
    model, *rest = urlsplit(address).path.removeprefix(HERE).split("/")
    return f"{model} {any(rest)}"


def _large() -> Iterator[Page]:
    for name, id in LARGE.items():
        address = f"{HERE}archivedjob/{id}/change/"
        yield Page(f"1 MB of data: {name}", address, DATA, LARGEST)


def _drafts() -> Iterator[Page]:
    """All jobs of a filter are selected, and drafted; the page that asks then."""
    from django_jobqueue.models import ArchivedJob, QueuedJob
    from django_jobqueue.operations.bulk import draft
    from django_jobqueue.search.selection import Selection, Table

    for model, action in ((ArchivedJob, "replay"), (QueuedJob, "cancel")):
        ticked = model._default_manager.values_list("pk", flat=True)[0]
        form = {
            "action": action,
            "select_across": "1",
            "index": "0",
            "_selected_action": str(ticked),
        }
        address = f"{HERE}{model._meta.model_name}/"
        yield Page(f"draft: {action}", address, DRAFT, form=form)
    drafted = draft("replay", Selection(Table.ARCHIVED))
    address = f"{HERE}bulkoperation/{drafted.id}/change/"
    yield Page("page of a draft", address, DRAFT)


def _archive(rare: str) -> Iterator[Page]:
    for name, query in _filters(datetime.now().astimezone(), rare).items():
        yield _list("archivedjob", f"archive: {name}", query)
    yield _list("archivedjob", "archive: far page", {"after": _far()})


def _filters(now: datetime, rare: str) -> dict[str, dict[str, Any]]:
    month, recent = now - timedelta(days=21), now - timedelta(days=17.5)
    week = {**_bound("gte", month), **_bound("lte", recent)}
    one = str(_archived())
    return {
        "all": {},
        **{s: {"status": s} for s in ("succeeded", "failed", "expired", "cancelled")},
        "type": {"job_type": COMMON},
        "rare type": {"job_type": rare},
        "dates (3.5 days)": week,
        "failed, type": {"status": "failed", "job_type": COMMON},
        "succeeded, type": {"status": "succeeded", "job_type": COMMON},
        "cancelled, rare type": {"status": "cancelled", "job_type": rare},
        "failed, type, dates": {"status": "failed", "job_type": COMMON, **week},
        "succeeded, type, dates": {"status": "succeeded", "job_type": COMMON, **week},
        "cancelled, rare type, dates": {
            "status": "cancelled",
            "job_type": rare,
            **week,
        },
        "failure group": {"fingerprint": _group()},
        "queue": {"queue": "queue_3"},
        "queue that has no job": {"queue": "none"},
        "priority": {"priority": ">3"},
        "worker": {"worker": "web-7:4100"},
        "error class": {"error": "Error17"},
        "error class that is not": {"error": "NoSuchError"},
        "replayed": {"replayed": "yes"},
        "not replayed": {"replayed": "no"},
        "created (3.5 days)": {
            k.replace("finished", "created"): v for k, v in week.items()
        },
        "q=text": {"q": "order 7"},
        "q=id": {"q": one},
        "q=beginning of an id": {"q": one[:8]},
        "q=ran:>19s": {"q": "ran:>19s"},
        "q=ran:>21s (none)": {"q": "ran:>21s"},
        "q=data.order:7": {"q": "data.order:7"},
        "q=tag:none": {"q": "tag:none"},
        "q=type: status: finished:": {
            "q": f"type:{COMMON} status:failed finished:<-17d"
        },
    }


def _queued() -> Iterator[Page]:
    states = ("ready", "later", "retrying", "running", "cancelling", "lapsed")
    found: dict[str, dict[str, str]] = {
        "all": {},
        **{state: {"state": state} for state in states},
        "type": {"job_type": COMMON},
        "queue": {"queue": "queue_3"},
        "priority": {"priority": ">3"},
        "worker": {"worker": "web-7:4100"},
        "error class": {"error": "Error17"},
        "q=data.order:7 (none)": {"q": "data.order:7"},
        "ready, type, queue": {
            "state": "ready",
            "job_type": COMMON,
            "queue": "queue_3",
        },
    }
    for name, query in found.items():
        yield _list("queuedjob", f"queued: {name}", query)


def _details() -> Iterator[Page]:
    from django_jobqueue.models import QueuedJob

    queued = QueuedJob.objects.values_list("pk", flat=True)[0]
    yield Page("archived job", f"{HERE}archivedjob/{_archived()}/change/", DETAIL)
    yield Page("queued job", f"{HERE}queuedjob/{queued}/change/", DETAIL)


def _overview() -> Iterator[Page]:
    for window in ("1h", "24h", "7d"):
        name, address = f"overview {window}", f"{HERE}?window={window}"
        page = Page(name, address, OVERVIEW)
        yield page
        yield replace(page, name=f"{name} without its cache", is_uncached=True)
        yield replace(
            page, name=f"refresh of {name}", is_refresh=True, largest=REFRESHED
        )


def _triage(rare: str) -> Iterator[Page]:
    today = datetime.now().astimezone()
    found: dict[str, dict[str, Any]] = {
        "all": {},
        **{state: {"state": state} for state in ("open", "regressed", "ignored")},
        "far page": {"after": _far_group()},
        "type": {"job_type": COMMON},
        "rare type": {"job_type": rare},
        "nobody's": {"assignee": "-"},
        "seen today": {"last_seen__range__gte_0": f"{today:%Y-%m-%d}"},
        "q=class": {"q": "Error17"},
        "q=nothing": {"q": "NoSuchError"},
        "q=fingerprint": {"q": str(_group())},
    }
    for name, query in found.items():
        yield _list("failuregroup", f"failure groups: {name}", query, TRIAGE)
    for name, group in (("newest", _group()), ("greatest", _flood())):
        address = f"{HERE}failuregroup/{group}/change/"
        yield Page(f"failure group: {name}", address, TRIAGE)


def _others() -> Iterator[Page]:
    for model in ("jobtype", "queue", "worker", "bulkoperation"):
        yield _list(model, f"list of {model}", {})
    yield Page("job type", f"{HERE}jobtype/{COMMON}/change/", LIST)


def _list(model: str, name: str, query: dict[str, Any], limit: int = LIST) -> Page:
    return Page(name, f"{HERE}{model}/?{urlencode(query)}", limit)


def _bound(end: str, at: datetime) -> dict[str, str]:
    """One end of a range of dates, as the filter's form sends it."""
    name = f"finished_at__range__{end}"
    return {f"{name}_0": f"{at:%Y-%m-%d}", f"{name}_1": f"{at:%H:%M:%S}"}


def _group() -> UUID:
    from django_jobqueue.models import FailureGroup

    found: UUID = FailureGroup.objects.order_by("-last_seen").values_list(
        "pk", flat=True
    )[0]
    return found


def _flood() -> UUID:
    """The group with most jobs: the distribution begins with it."""
    return UUID(md5(b"0").hexdigest())


def _far_group() -> str:
    """The place of a group near the end of the list."""
    from django_jobqueue.admin.lists.positions import Key
    from django_jobqueue.models import FailureGroup

    key = Key(FailureGroup, ("last_seen", "fingerprint"))
    oldest = FailureGroup.objects.order_by("last_seen")
    return key.write(key.of(oldest[min(100, oldest.count() - 1)]))


def _archived() -> UUID:
    """A job that failed, three weeks ago."""
    from django_jobqueue.models import ArchivedJob

    at = datetime.now().astimezone() - timedelta(days=21)
    failed = ArchivedJob.objects.filter(status="failed", finished_at__lt=at)
    found: UUID = failed.order_by("-finished_at", "-id").values_list("pk", flat=True)[0]
    return found


def _far() -> str:
    """The place of that job in the list."""
    from django_jobqueue.admin.lists.positions import Key
    from django_jobqueue.models import ArchivedJob

    key = Key(ArchivedJob, ("finished_at", "id"))
    return key.write(key.of(ArchivedJob.objects.get(pk=_archived())))
