"""The overview: what it shows, to whom, and what it costs."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from xml.etree import ElementTree

import pytest
from django.db import connection
from django.template import engines
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from django_jobqueue import operations
from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.models import BulkOperation, JobType
from django_jobqueue.stats import overview
from django_jobqueue.stats.cached import CachedValue
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.pages import Page, get, list_of, page_of
from tests.admin.scene import ADD, FAIL, Scene
from tests.stats.rows import ago, histogram, queued, rollup

FRONT = "/admin/jobqueue/"


def front(client: Client, **query: Any) -> Page:
    overview.forget()
    return get(client, FRONT, **query)


def region(page: Page, name: str) -> str:
    start = page.html.index(f'data-jq-region="{name}"')
    end = page.html.find("data-jq-region=", start + 20)
    found = Page("<p " + page.html[start : end if end > 0 else None])
    return found.text


def drawings(page: Page) -> list[ElementTree.Element]:
    """Every drawing of the page. Each is well-formed XML."""
    found = re.findall(r"<svg role=.*?</svg>|<svg class=.*?</svg>", page.html, re.S)
    return [ElementTree.fromstring(text) for text in found]


def test_it_is_the_front_page_of_the_job_queue(anna: Client, scene: Scene) -> None:
    queued(10_001, run_after=ago(hours=26, minutes=30))
    rollup(ago(minutes=1), succeeded=1_170, failed=30)
    operation = BulkOperation.objects.create(
        kind="cancel", state="failed", selection={}, created_by="ben"
    )
    page = front(anna)
    for text in ("Needs attention", "Job types", "Queues", "Workers", ADD, "web-1:3"):
        assert text in page.text
    assert page.all("a", **{"aria-current": "true"}) == [
        {"href": "?window=1h", "aria-current": "true"}
    ]
    # The cards say what waits and runs.
    text = region(page, "cards")
    for expected in (
        "Ready 10,001+",
        "Running 4 of 8 slots",
        "Retrying 1",
        "Oldest ready 1 d 2 h !",
        "Finished 20 a minute, last hour",
        "Failed 2.5 % last hour",
        "Workers alive 2 ! 1 lapsed",
    ):
        assert expected in text
    # Numbers lead to the lists of their jobs, and what needs attention to where it is.
    jobs, archive = list_of("queuedjob"), list_of("archivedjob")
    for link in (
        f"{jobs}?state=ready",
        f"{jobs}?job_type={ADD}&state=ready",
        f"{jobs}?queue=default&state=retrying",
        f"{archive}?job_type={ADD}&status=failed",
        page_of("jobtype", ADD),
        page_of("worker", scene.workers["lapsed"]),
        page_of("failuregroup", scene.group),
        page_of("bulkoperation", operation.pk),
    ):
        assert link in page.links
    assert "A bulk operation (cancel) of ben failed." in page.text
    # Nothing is inline, and every region has a name of its own.
    assert not page.all("style")
    assert [attrs for tag, attrs in page.elements if "style" in attrs] == []
    ours = [one for one in page.all("script") if "jobqueue" in (one.get("src") or "")]
    assert len(ours) == 2
    assert all("defer" in one for one in ours)
    names = [attrs.get("data-jq-region") for _, attrs in page.elements]
    found = [name for name in names if name]
    assert len(found) == len(set(found)) >= 6


def test_where_all_is_well_it_says_so(anna: Client, db: None) -> None:
    Schedule.objects.all().delete()  # those of the shop, which this worker knows not
    rows.worker()
    page = front(anna)
    assert "Nothing. All is well." in page.text
    assert "Nothing waits, nothing runs, and nothing finished." in page.text


def test_every_number_states_its_window(anna: Client, db: None) -> None:
    rollup(ago(minutes=1), succeeded=10)
    for window, label, finished in (
        ("1h", "last hour", "Finished 0.2"),
        ("24h", "last 24 hours", "Finished 0.0"),
        ("7d", "last 7 days", "Finished 0.0"),
        ("nonsense", "last hour", "Finished 0.2"),
    ):
        page = front(anna, window=window)
        assert f"{finished} a minute, {label}" in region(page, "cards")
        assert f"as a table, {label}" in page.text
        assert f"figures cover the {label}" in page.text


def test_a_row_has_the_figures_of_its_job_type(anna: Client, db: None) -> None:
    JobType.objects.filter(name=ADD).update(concurrency=50)
    queued(3, run_after=ago(minutes=2))
    queued(2, status="running")
    queued(1, run_after=ago(hours=-1), attempts=1)
    rollup(
        ago(minutes=3),
        succeeded=95,
        failed=5,
        run_histogram=histogram(*[0.05] * 90, *[2.0] * 10),
        wait_histogram=histogram(*[0.009] * 100),
    )
    text = region(front(anna), "types")
    expected = f"{ADD} 3 1 1 2 / 50 2 m 100 5.0 % 10 ms 63 ms 2.5 s"
    assert expected in text
    assert "100 finished, 5 of them failed, last hour" in front(anna).html


def worrying(page: Page) -> list[str]:
    found = re.findall(r'<td data-label="(\w+)"[^>]* class="jq-worry"', page.html)
    return [str(label) for label in found]


def test_only_what_is_wrong_now_is_marked(anna: Client, db: None) -> None:
    """However much failed earlier."""
    rollup(ago(hours=3), failed=50)
    page = front(anna, window="24h")
    assert "Failed 100 % last 24 hours" in region(page, "cards")
    assert worrying(page) == []
    rollup(ago(minutes=3), failed=50)
    overview.forget()
    page = front(anna, window="24h")
    assert "Failed 100 % ! last 24 hours" in region(page, "cards")
    assert worrying(page) == ["Failed", "Failed"]  # of the job type, of the queue
    # It stands first.
    for name in ("a.calm", "b.calm", "c.failing"):
        JobType.objects.create(name=name)
        rollup(ago(minutes=3), name, succeeded=50)
    rollup(ago(minutes=4), "c.failing", failed=50)
    text = region(front(anna), "types")
    assert text.index("c.failing") < text.index("a.calm") < text.index("b.calm")


def test_what_is_not_shown_is_idle_or_said_to_be_busy(
    anna: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of too many busy ones the busiest are shown, whatever their names."""
    monkeypatch.setattr(overview, "MOST_LINES", 3)
    idle = JobType.objects.count()
    names: list[str] = []
    for busy in (0, 3, 5, 30):
        for jobs in range(len(names) + 1, busy + 1):
            name, due = f"busy.type_{jobs:03}", ago(hours=1)
            names.append(name)
            JobType.objects.create(name=name)
            queued(min(jobs, 9), job_type_id=name, queue=f"q-{name}", run_after=due)
            rollup(ago(minutes=5), name, failed=jobs, queue=f"q-{name}")
        page = front(anna)
        text = region(page, "types")
        assert [name for name in names if name in text] == names[-3:]
        assert f"{idle} idle rows hidden (last hour)." in text
        hidden = max(0, busy - 3)
        said = f"{hidden} more with fewer failures and jobs are not shown."
        assert (said in text) is bool(hidden)
        assert (said in region(page, "queues")) is bool(hidden)
    operations.pause([FAIL], by="anna")
    assert f"{idle - 1} idle rows hidden" in region(front(anna), "types")


def test_the_charts_are_well_formed_and_say_what_they_show(
    anna: Client, db: None
) -> None:
    assert "No job ended." in region(front(anna), "charts")
    waits = histogram(2.0, 0.1)
    rollup(ago(minutes=10), succeeded=40, failed=4, other=2, wait_histogram=waits)
    rollup(ago(minutes=5), succeeded=8, run_histogram=histogram(0.3))
    page = front(anna)
    # The figures stand in a table, too.
    assert re.search(r"\d\d:\d\d 40 4 2 0 2\.5 s – –", region(page, "charts"))
    finished, times, *sparks = drawings(page)
    assert finished.attrib["role"] == times.attrib["role"] == "img"
    assert finished.attrib["aria-label"] == (
        "Jobs that ended, last hour: 48 succeeded, 4 failed, 2 ended otherwise."
    )
    first, second = finished.findall("g")
    parts = [part for part in first.findall("rect") if part.get("class") != "jq-spot"]
    kinds = [part.attrib["class"] for part in parts]
    assert kinds == ["jq-is-failed", "jq-is-other", "jq-is-succeeded"]
    heights = [float(part.attrib["height"]) for part in parts]
    assert heights == [8.0, 4.0, 80.0]
    assert float(parts[0].attrib["y"]) == 92.0
    title = second.find("title")
    assert title is not None
    assert (title.text or "").endswith(": 8 succeeded, 0 failed, 0 other")
    assert len(times.findall("path")) > 2
    assert len(sparks) == 2
    assert not [one for one in finished.iter() if "style" in one.attrib]


def test_links_lead_only_where_the_user_may_go(log_in: LogIn, scene: Scene) -> None:
    rollup(ago(minutes=1), failed=30)
    rows.archived()
    page = front(log_in("view_overview", "view_queue"))
    assert ADD in page.text
    models = ("archivedjob", "failuregroup", "jobtype", "queuedjob", "worker")
    content = page.html.partition('class="jq jq-overview"')[2]
    assert not [model for model in models if f"/jobqueue/{model}/" in content]
    # Without the right it is the plain list of pages.
    page = get(log_in("view_queuedjob", name="carl"), FRONT)
    assert "Needs attention" not in page.text
    assert list_of("queuedjob") in page.links
    assert FRONT not in [one["href"] for one in page.all("a") if "data-jq-key" in one]


def test_it_reads_little_and_nothing_of_the_archive(
    anna: Client, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    get_cached = CachedValue.get

    def get_for_an_hour(
        self: Any, name: str, seconds: float, *rest: Any, **more: Any
    ) -> Any:
        # However long the requests take.
        return get_cached(self, name, 3_600.0, *rest, **more)

    monkeypatch.setattr(CachedValue, "get", get_for_an_hour)

    def statements(window: str) -> list[str]:
        overview.forget()
        with CaptureQueriesContext(connection) as captured:
            get(anna, FRONT, window=window)
        return [query["sql"] for query in captured.captured_queries]

    few = len(statements("7d"))
    for number in range(20):
        JobType.objects.create(name=f"etl.step_{number:02}")
        queued(2, job_type_id=f"etl.step_{number:02}", run_after=ago(minutes=9))
        rollup(ago(minutes=number), f"etl.step_{number:02}", failed=30)
        rows.worker(f"web-{number}:1")
    for window in ("1h", "24h", "7d"):
        found = statements(window)
        assert len(found) == few <= 28
        of_archive = [text for text in found if "jobqueue_archivedjob" in text]
        (statuses,) = of_archive  # of schedules: by the ids of their last jobs
        assert "FROM jobqueue_schedules_schedule" in statuses
    assert len(statements("1h")) == few
    with CaptureQueriesContext(connection) as captured:
        get(anna, FRONT)  # session and user; the figures are kept for a moment
    assert len(captured) == 2


def test_with_a_nonce_our_files_carry_it() -> None:
    template = engines["django"].get_template("admin/jobqueue/media.html")
    page = Page(template.render({"csp_nonce": "abc"}))
    assert [attrs.get("nonce") for tag, attrs in page.elements] == ["abc"] * 4
    assert "nonce" not in template.render({})


@override_settings(USE_TZ=True, TIME_ZONE="Asia/Kolkata")
def test_spans_are_told_in_the_time_zone_of_the_page(anna: Client, db: None) -> None:
    at = ago(minutes=10)
    rollup(at, succeeded=1)
    local = at + timedelta(hours=5, minutes=30)
    assert f"{local:%H:%M}: 1 succeeded" in front(anna).html
