"""Curves of job types and queues, failures against time and releases, and releases
beside each other."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.admin.parts.charts import Decades, bars, line, spark, top
from django_jobqueue.models import FailureGroup, FailureRollup
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.pages import Page, get, list_of, page_of, verb_of
from tests.admin.scene import ADD, FAIL, archived, insert
from tests.admin.test_job_types import happened, histogram
from tests.admin.units import context, following

pytestmark = pytest.mark.django_db

MATRIX = verb_of("failuregroup", "matrix")
RELEASES = verb_of("jobtype", "releases")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def drawn(page: Page, summary: str) -> list[str]:
    """What the bars of the chart say whose summary has these words."""
    assert [one for one in page.all("svg") if summary in str(one.get("aria-label"))]
    return [text for text in page.texts if " succeeded, " in text and ":" in text]


def curves(client: Client, model: str, key: str, **query: str) -> Any:
    return context(client, model, key, **query)["page"].curves


def test_curves_are_of_one_object_alone_and_of_one_window(anna: Client) -> None:
    for succeeded, ago in ((1, HOUR / 2), (2, 20 * HOUR), (4, 6 * DAY), (8, 25 * DAY)):
        happened(ago, succeeded=succeeded)
    happened(2 * HOUR, failed=2, succeeded=4)
    happened(2 * HOUR, FAIL, queue="other", succeeded=1_000)
    for model, key in (("jobtype", ADD), ("queue", "default")):
        page = get(anna, page_of(model, key))
        summary = "last 24 hours: 7 succeeded, 2 failed, 0 ended otherwise"
        assert drawn(page, summary), model
    for window, words in (
        ("1h", "last hour: 1 succeeded"),
        ("7d", "last 7 days: 11 succeeded"),
        ("30d", "last 30 days: 19 succeeded"),
        ("nonsense", "last 24 hours: 7 succeeded"),
    ):
        page = get(anna, page_of("jobtype", ADD), window=window)
        assert drawn(page, words), window


def test_releases_deploys_and_acts_are_marked_and_chosen(
    anna: Client, log_in: LogIn
) -> None:
    happened(30 * HOUR, succeeded=1, release="1.0")
    happened(5 * HOUR, succeeded=5, release="1.0")
    happened(HOUR, succeeded=3, release="1.1")
    operations.pause([ADD], by="carl", reason="too many")
    page = get(anna, page_of("jobtype", ADD))
    assert drawn(page, "last 24 hours: 8 succeeded")
    assert "release 1.1 began" in page.text
    assert "release 1.0 began" not in page.text
    assert "carl: pause" in page.text
    assert len(page.all("path", **{"class": "jq-at-deploy"})) == 2  # in each chart
    assert len(page.all("path", **{"class": "jq-at-act"})) == 2
    (link,) = [link for link in page.links if "release=1.1" in link]
    page = get(anna, page_of("jobtype", ADD) + link)
    assert drawn(page, "last 24 hours: 3 succeeded")
    windows = curves(anna, "jobtype", ADD, window="7d").releases
    assert "window=7d" in next(one.url for one in windows if "release=1.1" in one.url)
    # Acts are for those who see the audit.
    client = log_in(*(view for view in VIEWS if view != "view_auditentry"))
    assert "carl" not in str(curves(client, "jobtype", ADD).events)


def test_the_day_before_is_drawn_beside(anna: Client) -> None:
    happened(HOUR, succeeded=3)
    happened(25 * HOUR, succeeded=6)
    page = get(anna, page_of("jobtype", ADD))
    (link,) = {link for link in page.links if "compare=1" in link}
    assert page.all("path", **{"class": "jq-line-before"}) == []
    page = get(anna, page_of("jobtype", ADD) + link)
    (line,) = page.all("path", **{"class": "jq-line-before"})
    points = re.findall(r"[ML](\S+) (\S+?)(?:h0)?(?=[ML]|$)", str(line["d"]))
    assert {y for _x, y in points} == {"100", "40"}  # nothing, and 6 of the axis's 10
    assert drawn(page, "last 24 hours: 3 succeeded")


# Failures against time and releases.


def failed(
    ago: timedelta, count: int, group: UUID, release: str = "", **more: object
) -> None:
    """So many failures of a group in an hour."""
    hour = (timezone.now() - ago).replace(minute=0, second=0, microsecond=0)
    row = {"fingerprint": group, "bucket": hour, "failed": count, "release": release}
    FailureRollup.objects.create(**row, **more)


def group(name: str, seen: timedelta = HOUR) -> UUID:
    key = UUID(int=int.from_bytes(name.encode().ljust(16)))
    row = {"fingerprint": key, "coarse": key, "error_class": f"shop.{name}"}
    first = {"frame": "shop.jobs:sell", "first_seen": timezone.now() - seen}
    insert(FailureGroup, {**row, **first})
    return key


def rows_of(page: Page) -> list[list[str]]:
    """The rows of the only table, cell by cell."""
    rows: list[list[str]] = []
    body = page.html.partition("<tbody>")[2].partition("</tbody>")[0]
    for row in body.split("<tr>")[1:]:
        cells = row.replace("<th", "<td").split("<td")[1:]
        rows.append([Page(f"<td{cell}").text for cell in cells])
    return rows


def test_the_most_frequent_failure_is_the_first_row(anna: Client) -> None:
    rare, often = group("Rare", 40 * DAY), group("Often")
    failed(HOUR, 2, rare)
    failed(HOUR, 30, often)
    failed(3 * HOUR, 12, often)
    failed(30 * HOUR, 500, rare)  # before the window
    known = {"status": "failed", "fingerprint": often}
    job = archived(finished_at=timezone.now() - HOUR, **known)
    archived(finished_at=timezone.now() - 5 * HOUR, **known)
    page = get(anna, MATRIX)
    rows = rows_of(page)
    assert [(row[0], row[1]) for row in rows] == [("Often new", "42"), ("Rare", "2")]
    assert len(rows[0]) == 2 + 24
    assert rows[0][-2] == "30"  # of the hour before this one
    assert rows[0][-4] == "12"
    assert MATRIX in get(anna, list_of("failuregroup")).links
    # A number leads to its jobs.
    links = [link for link in page.links if f"fingerprint={often}" in link]
    listed = following(anna, "archivedjob", links[-1].partition("?")[2])
    assert [row.pk for row in listed.result_list] == [job]


def test_releases_are_columns(anna: Client) -> None:
    assert "Nothing failed." in get(anna, MATRIX).text
    key = group("Often")
    failed(30 * HOUR, 4, key, "1.0")
    failed(HOUR, 6, key, "1.1")
    failed(HOUR, 1, key, "1.1", job_type="another")
    page = get(anna, MATRIX, by="release", window="7d")
    assert rows_of(page) == [["Often new", "11", "7", "4"]]
    assert any("release%3A%221.1%22" in link for link in page.links)


# Releases beside each other.


def test_what_is_worse_in_the_newer_release_comes_first(anna: Client) -> None:
    for name, release, failures, seconds in (
        (ADD, "1.0", 1, "1"),
        (ADD, "1.1", 1, "1"),
        (FAIL, "1.0", 1, "1"),
        (FAIL, "1.1", 40, "10"),
    ):
        ago = DAY if release == "1.0" else HOUR
        runs = histogram(**{f"s{seconds}": 100})
        counts = {"succeeded": 100 - failures, "failed": failures}
        happened(ago, name, release=release, run_histogram=runs, **counts)
    rows = rows_of(get(anna, RELEASES))
    assert [row[0] for row in rows] == [FAIL, ADD]
    assert rows[0][1:] == [
        *("100", "1.0 %", "1.0 s", "1.0 s", "100", "40.0 %", "10.0 s", "10.0 s"),
        "fails more often , slower",
    ]
    assert rows[1][-1] == ""


def test_groups_are_told_by_the_release_that_they_fail_in(
    anna: Client, log_in: LogIn
) -> None:
    happened(HOUR, succeeded=1, release="1.1")
    assert "Fewer than two releases" in get(anna, RELEASES).text
    happened(DAY, succeeded=1, release="1.0")
    for name, of in (("Old", ["1.0"]), ("Both", ["1.0", "1.1"]), ("New", ["1.1"])):
        key = group(name)
        for release in of:
            failed(HOUR, 3, key, release)
    for model in ("failuregroup", "jobtype"):
        assert RELEASES in get(anna, list_of(model)).links
    text = get(anna, RELEASES).text
    new = text.index("Fails in the newer release only")
    both = text.index("Fails in both")
    old = text.index("Failed in the older release only")
    assert "New 0 3" in text[new:both]
    assert "Both 3 3" in text[both:old]
    assert "Old 3 0" in text[old:]
    # Groups are for those who see them.
    client = log_in("view_jobtype")
    assert "Fails in the newer release only" not in get(client, RELEASES).text
    # A release that there is not is shown as nothing.
    for name in ("\x00", "<script>", "no such release", "'"):
        page = get(anna, RELEASES, old=name, new="1.1")
        assert "<script>" not in page.html


# Shapes of charts.


def test_the_parts_of_a_bar_stand_on_each_other_and_never_leave_the_drawing() -> None:
    (bar,) = bars([("now", [("failed", 10), ("other", 0), ("succeeded", 40)])], 100)
    assert [(part.style, part.y, part.height) for part in bar.parts] == [
        ("failed", "90", "10"),
        ("succeeded", "50", "40"),
    ]
    (bar,) = bars([("now", [("failed", 1), ("succeeded", 1_000)])], 1_000)
    assert sum(float(part.height) for part in bar.parts) <= 100
    # What is not zero is seen, and a gap is a gap.
    (bar,) = bars([("now", [("failed", 1)])], 1_000_000)
    assert [part.height for part in bar.parts] == ["1.5"]
    first, last = bars([("a", [("failed", 1)]), None, ("c", [("failed", 1)])], 1)
    assert (first.x, last.x) == ("1", "21")
    drawn = spark([[10, 0], [0, 0], [5, 5]], "15 finished")
    assert drawn.all == "M1 20V0h8V20M21 20V10h8V20"
    assert drawn.failed == "M21 20V10h8V20"
    assert (drawn.width, drawn.summary) == ("30", "15 finished")


def test_an_axis_has_round_ends_and_two_marks_at_least() -> None:
    ends = {0: 2, 1: 2, 2: 2, 3: 5, 5: 5, 6: 10, 11: 20, 49: 50, 501: 1_000}
    assert {most: top(most) for most in ends} == ends
    scale = Decades([0.1, 10.0])
    assert scale.marks == [10.0, 1.0, 0.1]
    drawn = line("wait", [0.1, 10.0, None, 1.0], scale)  # begins anew after a gap
    assert drawn.path == "M5 100h0L15 0h0M35 50h0"
    values: list[list[float | None]] = [[], [None], [0.0], [1.0]]
    assert [Decades(few).marks for few in values] == [[10.0, 1.0]] * 4
    # What is below the axis lies on it.
    assert Decades([1.0, 100.0]).y(0.0) == 100.0
    assert Decades([1.0, 100.0]).y(1e9) == 0.0
