"""One order, ten minutes of the night, a file, and a link for a colleague."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from django_jobqueue.admin.jobs import search_page
from django_jobqueue.admin.lists.change_list import JobChangeList
from django_jobqueue.store.reading import value_search
from tests.admin import scene as rows
from tests.admin.pages import list_of, page_of
from tests.browser.conftest import See
from tests.browser.stories.conftest import BY_CLICKS, OVERVIEW
from tests.browser.stories.on_call import OnCall
from tests.sample import jobs, orders
from tests.support.run_workers import RunWorkers

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ARCHIVE = list_of("archivedjob")
CHARGE, FAIL = orders.charge_order.name, jobs.fail.name
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
Run = Callable[..., RunWorkers]


def shown(me: OnCall) -> set[str]:
    """The pages of the jobs in the list."""
    links = me.page.locator("#result_list tbody th a, #result_list tbody td a")
    hrefs: list[str] = links.evaluate_all("all => all.map(a => a.getAttribute('href'))")
    return {href.partition("?")[0] for href in hrefs if "/archivedjob/" in href}


def pages_of(ids: Iterable[UUID]) -> set[str]:
    """The pages of these archived jobs."""
    return {page_of("archivedjob", id) for id in ids}


def ordered(number: Any, customer: str, **columns: Any) -> UUID:
    """An archived job of this order."""
    return rows.archived(
        CHARGE, data={"order_id": number, "customer": customer}, **columns
    )


def test_an_order_of_last_month_is_found_by_its_number_alone(
    me: OnCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_search, "MOST_JOBS", 20)  # as if there were more jobs
    monkeypatch.setattr(search_page, "MOST_JOBS", 20)
    monkeypatch.setattr(JobChangeList, "window", 25)
    now = timezone.now()
    number = ordered(4711, "Harbour", finished_at=now - 30 * DAY)
    text = ordered("4711", "Miller", finished_at=now - 31 * DAY)
    for n in range(60):
        ordered(10_000 + n, "Miller", finished_at=now - n * MINUTE)
    data = {"order_id": 4711, "customer": "Jones"}
    rows.queued(CHARGE, data=data, run_after=now + DAY)
    me.opens(OVERVIEW)
    me.enter("4711", into="[data-jq-jump]")
    me.press("data.order_id:4711")
    me.sees("Searched back to")
    assert "order 4711 of Jones" in me.text
    me.press("Search older ones")
    me.press("Search all of them")
    me.sees("order 4711 of Harbour", "order 4711 of Miller")
    assert shown(me) == pages_of([number, text])
    me.press("order 4711 of Harbour", exact=False)
    me.sees("4711", "Harbour")
    assert me.screen.path == page_of("archivedjob", number)


@BY_CLICKS
def test_what_ran_in_ten_minutes_of_the_night(me: OnCall) -> None:
    two = (timezone.now() - DAY).replace(hour=2, minute=0, second=0, microsecond=0)

    def ran(start: int, end: int) -> UUID:
        started, finished = two + start * MINUTE, two + end * MINUTE
        return ordered(start, "Miller", started_at=started, finished_at=finished)

    before, over_start, inside = ran(-9, -5), ran(-5, 3), ran(4, 6)
    over_end, around, after = ran(8, 20), ran(-30, 60), ran(11, 12)
    me.opens(ARCHIVE)

    def fill(form: str, end: str, at: datetime) -> None:
        me.fill(f"{end}, date", f"{at:%Y-%m-%d}", within=form)
        me.fill(f"{end}, time", f"{at:%H:%M:%S}", within=form)

    finished = "form[aria-label='Finished at']"
    fill(finished, "From", two)
    me.press("Filter", within=finished)
    me.sees("5 archived jobs")
    assert shown(me) == pages_of([over_start, inside, over_end, around, after])
    me.unfold("By started at")
    started = "form[aria-label='Started at']"
    fill(started, "To", two + 10 * MINUTE)
    me.press("Filter", within=started)
    me.sees("4 archived jobs", f"{two:%Y-%m-%d} 02:00:00 UTC", "02:10:00")
    assert shown(me) == pages_of([over_start, inside, over_end, around])
    assert page_of("archivedjob", before) not in shown(me)


def test_what_a_filter_selects_is_exported_and_shared(me: OnCall, see: See) -> None:
    words = ["=cmd|' /C calc'!A0", "no stock, “sorry”"]
    failed = pages_of(
        rows.archived(FAIL, "failed", data={"message": word}, error_message=word)
        for word in words
    )
    rows.archived()
    me.opens(ARCHIVE)
    me.press("Failed", within=".jq-list-head")
    me.enter(f"type:{FAIL}", into="#searchbar")
    me.sees("2 archived jobs")
    table = list(csv.DictReader(io.StringIO(me.download("CSV"))))
    assert {row["error_message"] for row in table} == {f"'{words[0]}", words[1]}
    lines = [json.loads(line) for line in me.download("JSON lines").splitlines()]
    assert {line["error_message"] for line in lines} == set(words)
    assert {line["data"]["message"] for line in lines} == set(words)
    colleague = OnCall(see("Job viewer"))
    colleague.page.goto(me.page.url)
    assert shown(colleague) == failed
    assert colleague.page.locator(".jq-chip").all_inner_texts() == (
        me.page.locator(".jq-chip").all_inner_texts()
    )
    assert colleague.page.locator("select[name=action]").count() == 0
    table = list(csv.DictReader(io.StringIO(colleague.download("CSV"))))
    assert len(table) == 2
    assert "data" not in table[0]
