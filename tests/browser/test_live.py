"""Pages that refresh themselves, and keys, in a browser."""

from __future__ import annotations

import re

import pytest
from django.contrib.sessions.models import Session

from django_jobqueue.models import JobType
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.stats import overview
from tests.admin import scene as rows
from tests.admin.pages import list_of, page_of
from tests.admin.scene import Scene, build
from tests.browser.conftest import Screen, See

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

FRONT = "/admin/jobqueue/"
TEN_MINUTES = "Date.now = ((now) => () => now() + 600_000)(Date.now)"


@pytest.fixture
def scene(transactional_db: None) -> Scene:
    """Rows of every state."""
    overview.forget()
    return build()


@pytest.fixture
def screen(screen: Screen) -> Screen:
    """Its pages refresh themselves more often."""
    screen.hastens()
    return screen


def card(screen: Screen) -> str:
    """How many jobs are ready, as the first card says."""
    text: str = screen.page.locator(".jq-card dd").first.inner_text()
    return text


def test_regions_are_replaced_and_what_was_opened_stays_open(
    screen: Screen, scene: Scene
) -> None:
    screen.open(FRONT)
    assert card(screen) == "3"
    screen.page.locator("#jq-chart-table summary").click()
    screen.refreshes()
    screen.page.locator("[data-jq-region=types] tbody a").first.focus()
    before = screen.page.evaluate("document.activeElement.href")
    rows.queued()
    overview.forget()
    first = screen.page.locator(".jq-card").first
    first.get_by_text("4", exact=True).wait_for()
    assert screen.page.locator("#jq-chart-table").get_attribute("open") is not None
    assert screen.page.evaluate("document.activeElement.href") == before
    assert "window" not in screen.page.url


def test_a_refresh_fetches_what_changed_and_not_the_page(
    screen: Screen, transactional_db: None
) -> None:
    """Where no job waits or runs, no age changes."""
    overview.forget()
    screen.open(list_of("jobtype"))
    screen.refreshes()
    with screen.page.expect_response(f"**{list_of('jobtype')}") as unchanged:
        pass
    assert unchanged.value.text() == ""
    JobType.objects.create(name="shop.jobs.new")
    screen.page.locator("[data-jq-region=rows]").get_by_text("shop.jobs.new").wait_for()
    with screen.page.expect_response(f"**{list_of('jobtype')}") as again:
        pass
    assert again.value.text() == ""
    assert f"{JobType.objects.count()} job types" in screen.text


def test_names_are_suggested_while_one_is_typed(screen: Screen, scene: Scene) -> None:
    JobType.objects.bulk_create(JobType(name=f"shop.type_{n:03}") for n in range(150))
    screen.open(list_of("queuedjob"))
    field = screen.page.locator("input[name=job_type]")
    field.press_sequentially("type_01")
    option = screen.page.locator("datalist option[value='shop.type_017']")
    option.wait_for(state="attached")
    assert screen.page.locator("datalist option").count() == 10


def test_the_choice_is_remembered(screen: Screen, scene: Scene) -> None:
    screen.open(FRONT)
    assert screen.page.get_by_label("Refresh").input_value() == "10"
    screen.page.get_by_label("Refresh").select_option("5")
    screen.open(list_of("queuedjob"))
    assert screen.page.get_by_label("Refresh").input_value() == "5"


def test_nothing_is_replaced_while_a_row_is_selected(
    screen: Screen, scene: Scene
) -> None:
    screen.open(list_of("queuedjob"))
    screen.refreshes()
    screen.page.locator("input.action-select").first.check()
    screen.shows("waiting while you read or select")
    screen.page.locator("input.action-select").first.uncheck()
    screen.page.evaluate("document.activeElement.blur()")
    id = rows.queued()
    screen.page.locator(f'a[href^="{page_of("queuedjob", id)}"]').first.wait_for()
    screen.page.locator("#action-toggle").check()
    count = screen.page.locator("input.action-select").count()
    assert f"{count} of {count} selected" in screen.text


def test_at_the_end_of_the_session_it_stops_and_says_so(
    screen: Screen, scene: Scene
) -> None:
    screen.open(FRONT)
    screen.refreshes()
    Session.objects.all().delete()
    screen.shows("you are logged out")
    assert card(screen) == "3"


def test_without_an_answer_the_figures_tell_their_age(
    screen: Screen, scene: Scene
) -> None:
    """As when the database is down: old figures must not look like new ones."""
    screen.open(FRONT)
    screen.refreshes()
    assert "jq-stale" not in screen.page.content()
    for answer in (
        lambda route: route.fulfill(status=500, body="down"),
        lambda route: route.abort(),
    ):
        screen.page.route("**/admin/jobqueue/", answer)
        screen.shows("No answer: these figures are old.")
        bar = screen.page.locator("[data-jq-live]")
        assert re.search(r"updated \d+ s ago", bar.inner_text())
        assert screen.page.locator("[data-jq-region=cards].jq-stale").count() == 1
        screen.page.evaluate(TEN_MINUTES)
        screen.shows("updated 10 minutes ago")
        screen.page.unroute("**/admin/jobqueue/")
        screen.page.evaluate(TEN_MINUTES)  # it asks less and less often
        screen.page.locator(".jq-stale").first.wait_for(state="detached")
        screen.page.get_by_text("No answer").wait_for(state="hidden")
    unanswered = [c for c in screen.complaints if c.startswith("Failed to load")]
    assert screen.complaints == unanswered
    screen.complaints.clear()


def test_a_draft_is_refreshed_until_it_is_counted(
    screen: Screen, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "AT_ONCE", 0.0)
    failed = Selection(Table.ARCHIVED, (Term("status", "failed"),))
    draft = bulk.draft("replay", failed)
    screen.open(page_of("bulkoperation", draft.id))
    screen.shows("Counting:")
    screen.refreshes()
    bulk.count(draft.id)
    screen.page.locator("input[value='Replay 2 jobs']").wait_for()
    assert "Replay 2 jobs?" in screen.text
    assert not screen.page.get_by_label("Refresh").is_visible()


def test_without_scripts_there_is_no_choice_and_all_figures(
    see: See, scene: Scene
) -> None:
    screen = see(java_script_enabled=False)
    screen.open(FRONT)
    assert not screen.page.get_by_label("Refresh").is_visible()
    assert card(screen) == "3"
    screen.page.get_by_placeholder("Job id, type, error …").fill(rows.ADD)
    screen.press("Go")
    assert screen.path == page_of("jobtype", rows.ADD)


def test_keys_lead_to_tabs_rows_and_the_search(screen: Screen, scene: Scene) -> None:
    page = screen.open(FRONT)
    page.keyboard.press("g")
    page.keyboard.press("q")
    page.wait_for_url(f"**{list_of('queuedjob')}", wait_until="domcontentloaded")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("x")
    second = page.locator("input.action-select").nth(1)
    assert second.is_checked()
    page.keyboard.press("x")
    page.keyboard.press("k")
    page.keyboard.press("/")
    page.keyboard.type("gq?")
    assert page.locator("#searchbar").input_value() == "gq?"
    assert screen.path == list_of("queuedjob")
    page.locator("#searchbar").fill("")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    assert keys.is_visible()
    page.keyboard.press("Escape")
    keys.wait_for(state="hidden")
    page.wait_for_function("!document.activeElement.closest('dialog')")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/change/**", wait_until="commit")
