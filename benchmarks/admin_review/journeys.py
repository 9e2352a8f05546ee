"""What takes more than one page: finding an old order, drafting a bulk operation, and
exporting many jobs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any, Final
from urllib.parse import urlencode

import psutil

from benchmarks.admin_pages import COMMON, HERE
from benchmarks.admin_review.measure import Measured, Took
from benchmarks.admin_review.pages import old_job, old_order
from benchmarks.admin_review.rows import INDEXED

MOST_CLICKS: Final = 3
MOST_SECONDS: Final = 5.0
EXPORTED: Final = 100_000  # jobs
DRAFT_LIMIT: Final = 600  # milliseconds; of these it counts for 400
OLDER: Final = re.compile(r'data-jq-older.*?<a href="([^"]+)"', re.DOTALL)

START_SEARCH = "/admin/jobqueue_console/jobsearch/start/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One way to find an order of the oldest ones."""

    name: str
    clicks: int  # beside typing
    requests: int
    found: bool
    seconds: float  # of all requests, on the clock
    work: float  # seconds of processors

    @property
    def verdict(self) -> str:
        """Empty if it reached the aim."""
        if not self.found:
            return "not found"
        reached = self.clicks <= MOST_CLICKS and self.work <= MOST_SECONDS
        aim = f"over {MOST_CLICKS} clicks or {MOST_SECONDS:.0f} s"
        return "" if reached else aim


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A file of many jobs."""

    name: str
    rows: int
    seconds: float
    work: float
    megabytes: float  # of the file
    grown_mb: float  # the most that this process grew by meanwhile

    @property
    def rate(self) -> float:
        """Jobs per second."""
        return self.rows / self.seconds


def searches(client: Any, say: Callable[[str], None]) -> list[Search]:
    """Every way, once."""
    order = old_order()
    archive = f"{HERE}archivedjob/?"
    ways: dict[str, tuple[int, Callable[[], Iterator[str]]]] = {
        "key, with an index": (
            1,
            lambda: iter([archive + _q(f"type:{INDEXED} data.order:{order}")]),
        ),
        "value alone, with an index": (
            2,
            lambda: iter(
                [
                    f"{HERE}queuedjob/search/?{_q(str(order))}",
                    f"{HERE}queuedjob/search/?"
                    + _q(f"type:{INDEXED} data.order:{order}"),
                ]
            ),
        ),
        "key, without an index, in the browser": (
            2,
            lambda: _window_by_window(client, archive + _q(f"data.order:{order}")),
        ),
    }
    ways["key, without an index, in the background"] = (
        2,
        lambda: _in_the_background(client, f"data.order:{order}"),
    )
    found = []
    for name, (clicks, way) in ways.items():
        say(f"search: {name}")
        found.append(_searched(client, name, clicks, way()))
    return found


def _searched(client: Any, name: str, clicks: int, way: Iterator[Any]) -> Search:
    """Ask until the job is on a page."""
    took, is_found, requests = Took(), False, 0
    page_of_job = f"/archivedjob/{old_job()}/change/"
    for address in way:
        with took.noted():
            response = address() if callable(address) else client.get(address)
        requests += 1
        is_found = page_of_job in response.content.decode()
        if is_found:
            break
    return Search(
        name=name,
        clicks=clicks,
        requests=requests,
        found=is_found,
        seconds=round(sum(took.times) / 1_000, 3),
        work=round(sum(took.work) / 1_000, 3),
    )


def _window_by_window(client: Any, address: str) -> Iterator[Any]:
    """As the script of the page goes on; each request yields what asks for it."""
    following: list[str] = [address]

    def ask() -> Any:
        response = client.get(following.pop())
        older = OLDER.search(response.content.decode())
        if older:
            following.append(f"{HERE}archivedjob/{unescape(older[1])}")
        return response

    while following:
        yield ask


def _in_the_background(client: Any, query: str) -> Iterator[Any]:
    """By the button of the search: its page, the button, the work, and the result."""
    from django_jobqueue.contrib.console.models import JobSearch

    yield f"{HERE}queuedjob/search/?{_q(query)}"
    address = ""

    def start() -> Any:
        nonlocal address
        response = client.post(START_SEARCH, {"q": query})
        address = response["Location"]
        return response

    yield start
    id = address.rstrip("/").split("/")[-2]
    while JobSearch.objects.get(pk=id).state in ("queued", "running"):

        def work() -> Any:
            _work_off(JobSearch.objects.get(pk=id))
            return client.get(address)

        yield work


def _work_off(search: Any) -> None:
    """What its job does in a worker."""
    from django_jobqueue.contrib.console import job_searches
    from django_jobqueue.domain.context import Context

    now = datetime.now(UTC)
    context = Context(
        id=search.job_id,
        job_type="jobqueue.bulk",
        queue="default",
        attempt=1,
        max_attempts=10,
        crashes=0,
        data={},
        run_after=now,
        created_at=now,
        worker="bench:1",
    )
    job_searches.WORK.run_job(context, search.pk)


def drafts(client: Any, rounds: int) -> list[Measured]:
    """Draft a replay and a prune of many jobs, and look at the draft."""
    from django_jobqueue import operations

    found = []
    for name, query in (
        ("replay of all failed", {"status": "failed"}),
        ("replay, 3.5 days", {**_some_days(), "status": "failed"}),
        ("prune of a type", {"job_type": COMMON}),
    ):
        drafting = Measured(title="Bulk draft", name=f"{name}, made", limit=DRAFT_LIMIT)
        looking = Measured(title="Bulk draft", name=f"{name}, shown", limit=200)
        for _ in range(rounds):
            address = f"{HERE}archivedjob/?{urlencode(query)}"
            data = _chosen(client, address, name.split(" ")[0].rstrip(","))
            with drafting.noted():
                response = client.post(address, data)
            page = response["Location"] if response.status_code == 302 else ""
            drafting.status = 200 if "bulkoperation" in page else response.status_code
            with looking.noted():
                shown = client.get(page)
            looking.status = shown.status_code
            operations.bulk.discard(page.rstrip("/").split("/")[-2])
        found += [drafting, looking]
    return found


def _chosen(client: Any, address: str, verb: str) -> dict[str, Any]:
    """The form of a list on which all that match were selected."""
    text = client.get(address).content.decode()
    keys = re.findall(r'name="_selected_action" value="([^"]+)"', text)
    return {
        "action": verb,
        "index": 0,
        "select_across": 1,
        "_selected_action": keys[:1],
    }


def exports(client: Any, say: Callable[[str], None]) -> list[Export]:
    """The newest jobs of a range, in both forms."""
    from django.db import connection

    # A range with so many jobs: where the row after the last one is.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT finished_at FROM jobqueue_archivedjob ORDER BY finished_at DESC, id"
            " DESC OFFSET %s LIMIT 1",
            [EXPORTED],
        )
        row = cursor.fetchone()
    query = urlencode(_range("gte", row[0])) if row else ""
    found = []
    for name, kind in (("CSV", "csv"), ("JSON lines", "jsonl")):
        say(f"export: {name}")
        found.append(
            _exported(client, name, f"{HERE}archivedjob/export.{kind}/", query)
        )
    return found


def _exported(client: Any, name: str, address: str, query: str) -> Export:
    took, size, rows = Took(), 0, 0
    process = psutil.Process()
    before = most = process.memory_info().rss
    with took.noted():
        response = client.get(f"{address}?{query}")
        assert response.status_code == 200, response.status_code
        for part in response.streaming_content:
            size += len(part)
            rows += part.count(b"\n")
            most = max(most, process.memory_info().rss)
    return Export(
        name=name,
        rows=rows - (name == "CSV"),
        seconds=round(took.times[0] / 1_000, 3),
        work=round(took.work[0] / 1_000, 3),
        megabytes=round(size / 1e6, 1),
        grown_mb=round((most - before) / 2**20, 1),
    )


def _some_days() -> dict[str, str]:
    now = datetime.now(UTC)
    return {
        **_range("gte", now - timedelta(days=21)),
        **_range("lte", now - timedelta(days=17.5)),
    }


def _range(end: str, moment: datetime) -> dict[str, str]:
    """One end of a range of times, as the form of the filter sends it."""
    name = f"finished_at__range__{end}"
    return {f"{name}_0": f"{moment:%Y-%m-%d}", f"{name}_1": f"{moment:%H:%M:%S}"}


def _q(text: str) -> str:
    return urlencode({"q": text})
