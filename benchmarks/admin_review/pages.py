"""The pages that are measured on millions of jobs, in the order of the report.

Pages of one row of the report follow each other and share its title.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from benchmarks.admin_pages import COMMON, HERE
from benchmarks.admin_review.rows import INDEXED

SLOWEST: Final = 200  # milliseconds that 95 of 100 requests may take
STATES: Final = ("ready", "later", "retrying", "running", "cancelling", "lapsed")
NIGHTS: Final = 3  # ago: in the middle of what the lists have read often


class Cache(Enum):
    """What a page finds in the cache of the figures."""

    AS_IT_IS = "as it is"
    FULL = "full"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Page:
    """An address, and the milliseconds that 95 of 100 requests may take."""

    title: str  # of the row of the report
    name: str
    address: str
    cache: Cache = Cache.AS_IT_IS
    limit: int = SLOWEST


Queries = Mapping[str, Mapping[str, Any]]


def pages() -> list[Page]:
    """All of them."""
    now = datetime.now(UTC)
    return [
        *_archive(now),
        *_queue(),
        *_failures(),
        *_jobs(),
        *_objects(),
        *_history(),
        *_overview(),
        *_everywhere(),
    ]


def _archive(now: datetime) -> Iterator[Page]:
    night = now.replace(hour=2, minute=0, second=0, microsecond=0)
    night -= timedelta(days=NIGHTS)
    some_days = _between(now - timedelta(days=21), now - timedelta(days=17.5))
    month = _between(now - timedelta(days=30), now)
    failed = {"status": "failed"}
    yield from _lists(
        "archivedjob",
        {
            "Archive": {"all": {}, "failed": failed, "type": {"job_type": COMMON}},
            "Archive, by time": {
                "failed, type, 3.5 days": {**failed, "job_type": COMMON, **some_days},
                "ten minutes": _between(night, night + timedelta(minutes=10)),
                "month": month,
            },
            "Archive, oldest page": {
                "all": {"after": _oldest()},
                "failed": {**failed, "after": _oldest()},
                "error class": {"error": "Error17", "after": _oldest()},
            },
            "Archive, failure group": {
                "greatest": {"fingerprint": _group("greatest")},
                "rare": {"fingerprint": _group("rare")},
            },
            "Archive, without an index": {
                "replayed:yes": {"q": "replayed:yes"},
                "error:": {"q": "error:Error17"},
                "ran:": {"q": "ran:>19s"},
                "data.": {"q": "data.order:7"},
            },
            "Archive, search": {
                "id": {"q": str(_archived())},
                "beginning of an id": {"q": str(_archived())[:8]},
                "words": {"q": "carrier"},
                "indexed key": {"q": f"type:{INDEXED} data.order:{old_order()}"},
            },
        },
    )


def _queue() -> Iterator[Page]:
    found: dict[str, dict[str, Any]] = {"all": {}}
    found |= {state: {"state": state} for state in STATES}
    yield from _lists("queuedjob", {"Queue": found})


def _failures() -> Iterator[Page]:
    yield from _lists(
        "failuregroup",
        {
            "Failures": {
                "all": {},
                "open": {"state": "open"},
                "type": {"job_type": COMMON},
                "search": {"q": "Error17"},
            },
            "Failures, ordered by": {
                "1 h": {"sort": "hour"},
                "24 h": {"sort": "day"},
                "first seen": {"sort": "new"},
                "job types": {"sort": "types"},
                "24 h, open": {"sort": "day", "state": "open"},
                "24 h, type": {"sort": "day", "job_type": COMMON},
            },
        },
    )
    for which in ("greatest", "newest", "rare"):
        address = f"{HERE}failuregroup/{_group(which)}/change/"
        yield Page("Failure group", which, address)
    for window in ("24h", "7d", "30d"):
        for by in ("time", "release"):
            address = f"{HERE}failuregroup/matrix/?{urlencode(_matrix(window, by))}"
            yield Page(f"Failures by {by}", window, address)


def _matrix(window: str, by: str) -> dict[str, str]:
    return {"window": window, "by": by}


def _jobs() -> Iterator[Page]:
    from django_jobqueue.models import QueuedJob

    queued = QueuedJob.objects.values_list("pk", flat=True)[0]
    found = {
        "archived": ("archivedjob", _archived()),
        "queued": ("queuedjob", queued),
        "1 MB of data": ("archivedjob", _newest_failed()),
    }
    for name, (model, key) in found.items():
        yield Page("Job", name, f"{HERE}{model}/{key}/change/")


def _objects() -> Iterator[Page]:
    for name in ("jobtype", "queue", "worker", "bulkoperation", "schedule"):
        yield Page("Other lists", _PLURALS[name], f"{HERE}{name}/")
    yield Page("Objects", "job type", f"{HERE}jobtype/{COMMON}/change/")
    yield Page("Objects", "queue", f"{HERE}queue/queue_3/change/")
    yield Page("Objects", "worker", f"{HERE}worker/1/change/")
    yield from _lists(
        "auditentry",
        {
            "Audit": {
                "all": {},
                "person": {"by": "operator 7"},
                "act": {"verb": "pause"},
                "search": {"q": COMMON},
            }
        },
    )


def _history() -> Iterator[Page]:
    address = f"{HERE}jobtype/{COMMON}/change/?"
    found: dict[str, dict[str, Any]] = {
        name: {"window": name} for name in ("1h", "24h", "7d", "30d")
    }
    found["30d, compared"] = {"window": "30d", "compare": "1"}
    found["30d, a release"] = {"window": "30d", "release": _release()}
    for name, query in found.items():
        yield Page("History of a job type", name, address + urlencode(query))
    for name in ("24h", "30d"):
        address = f"{HERE}queue/queue_3/change/?window={name}"
        yield Page("History of a queue", name, address)
    yield Page("Releases", "compared", f"{HERE}jobtype/releases/")
    yield Page("Releases", "changes", f"{HERE}jobtype/{COMMON}/history/")


def _overview() -> Iterator[Page]:
    for cache in (Cache.FULL, Cache.EMPTY):
        title = "Overview, cached" if cache is Cache.FULL else "Overview, not cached"
        for name in ("1h", "24h", "7d", "30d"):
            yield Page(title, name, f"{HERE}?window={name}", cache)


def _everywhere() -> Iterator[Page]:
    found = {
        "value": str(old_order()),
        "value, recent": str(_orders() - 10),
        "value, nowhere": "no-such-value",
        "key": f"data.order:{old_order()}",
        "indexed key": f"type:{INDEXED} data.order:{old_order()}",
        "word": "carrier",
        "id": str(_archived()),
    }
    for name, query in found.items():
        address = f"{HERE}queuedjob/search/?{urlencode({'q': query})}"
        yield Page("Search everywhere", name, address)


def _lists(model: str, rows: Mapping[str, Queries]) -> Iterator[Page]:
    for title, queries in rows.items():
        for name, query in queries.items():
            yield Page(title, name, f"{HERE}{model}/?{urlencode(query)}")


_PLURALS: Final = {
    "jobtype": "job types",
    "queue": "queues",
    "worker": "workers",
    "bulkoperation": "operations",
    "schedule": "schedules",
}


def _between(start: datetime, end: datetime) -> dict[str, str]:
    """A range of times, as the form of the filter sends it."""
    found = {}
    for name, moment in (("gte", start), ("lte", end)):
        found[f"finished_at__range__{name}_0"] = f"{moment:%Y-%m-%d}"
        found[f"finished_at__range__{name}_1"] = f"{moment:%H:%M:%S}"
    return found


def old_order() -> int:
    """The order of one of the oldest archived jobs, whose type has an index."""
    return int(_old_job()[1]["order"])


def old_job() -> UUID:
    """That job."""
    return UUID(str(_old_job()[0]))


def _old_job() -> tuple[Any, Any]:
    from django_jobqueue.models import ArchivedJob

    jobs = ArchivedJob.objects.order_by("finished_at", "id")
    oldest = jobs.values_list("pk", "data", "job_type_id")[:1_000]
    of_type = [(pk, data) for pk, data, name in oldest if name == INDEXED]
    return of_type[min(9, len(of_type) - 1)]


def _orders() -> int:
    """The number of the newest archived job."""
    from django_jobqueue.models import ArchivedJob

    jobs = ArchivedJob.objects.filter(status="succeeded")
    data = jobs.order_by("-finished_at", "-id").values_list("data", flat=True)[0]
    return int(data["order"])


def _archived() -> UUID:
    """A job that failed, three weeks ago."""
    from django_jobqueue.models import ArchivedJob

    at = datetime.now(UTC) - timedelta(days=21)
    failed = ArchivedJob.objects.filter(status="failed", finished_at__lt=at)
    found: UUID = failed.order_by("-finished_at", "-id").values_list("pk", flat=True)[0]
    return found


def _newest_failed() -> UUID:
    """The job whose data are large."""
    from django_jobqueue.models import ArchivedJob

    failed = ArchivedJob.objects.filter(status="failed")
    found: UUID = failed.order_by("-finished_at", "-id").values_list("pk", flat=True)[0]
    return found


def _oldest() -> str:
    """The place after which the list has one more page."""
    from django_jobqueue.admin.lists.positions import Key
    from django_jobqueue.models import ArchivedJob

    key = Key(ArchivedJob, ("finished_at", "id"))
    oldest = ArchivedJob.objects.order_by("finished_at", "id")
    return key.write(key.of(oldest[min(1_000, oldest.count() - 1)]))


def _group(which: str) -> UUID:
    """The failure group with the most jobs, with few, or the one seen last."""
    from django.db.models import Sum

    from django_jobqueue.models import FailureGroup, FailureRollup

    rows = FailureRollup.objects.values("fingerprint").annotate(n=Sum("failed"))
    order = "-n" if which == "greatest" else "n"
    groups: Any = rows.order_by(order, "fingerprint")
    if which == "newest":
        groups = FailureGroup.objects.order_by("-last_seen", "-fingerprint")
    return UUID(str(groups.values_list("fingerprint", flat=True)[0]))


def _release() -> str:
    from django_jobqueue.models import Rollup

    newest = Rollup.objects.filter(job_type=COMMON).order_by("-bucket")
    found: str = newest.values_list("release", flat=True)[0]
    return found
