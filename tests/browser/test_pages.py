"""Single pages in a browser: how wide they are, and what their scripts do."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.utils import quote
from django.urls import reverse

from django_jobqueue.contrib.console.models import SavedView
from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.models import FailureRollup
from django_jobqueue.text import timezones
from tests.admin.pages import list_of
from tests.admin.scene import FAIL, Scene, build
from tests.browser.conftest import Screen, See

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
WITHOUT = pytest.mark.slow("without scripts, pages are what tests/admin gets")

SIDEWAYS = """() => [...document.querySelectorAll(".jq-matrix td")].filter((cell) => {
  const {left, right} = cell.getBoundingClientRect();
  return left < 0 || right > innerWidth;
}).length"""


@pytest.fixture
def scene(transactional_db: None) -> Scene:
    """Rows of every state."""
    return build()


def test_all_of_the_failures_by_time_is_seen_on_a_phone(see: See, scene: Scene) -> None:
    now = timezones.now()
    FailureRollup.objects.bulk_create(
        FailureRollup(
            fingerprint=scene.group,
            bucket=now - timedelta(hours=hours),
            release=f"2026.{hours % 8}",
            failed=10**hours % 99_999,
        )
        for hours in range(24)
    )
    screen = see(viewport={"width": 390, "height": 800})
    for query in ("window=24h", "window=7d", "by=release"):
        screen.open(f"/admin/jobqueue/failuregroup/matrix/?{query}")
        assert screen.page.locator(".jq-matrix td a").count() > 1
        assert screen.page.evaluate(SIDEWAYS) == 0, query


def test_what_saves_the_overrides_is_seen_at_once(screen: Screen, scene: Scene) -> None:
    page = screen.open(f"/admin/jobqueue/jobtype/{quote(FAIL)}/change/")
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate("document.body.scrollHeight") > 1_400
        place = page.locator("input[name=_save]").bounding_box()
        assert place["y"] + place["height"] <= 700, width


def test_where_a_list_is_narrow_each_cell_says_its_name(
    screen: Screen, scene: Scene
) -> None:
    screen.open("/admin/jobqueue/queuedjob/")
    cell = screen.page.locator(".field-reasons .jq-cell").first
    assert cell.is_visible()
    assert "Why not running?" in cell.evaluate(
        "(one) => getComputedStyle(one, '::before').content"
    )
    assert screen.page.locator("#action-toggle").is_visible()


@pytest.mark.parametrize("scripts", [True, pytest.param(False, marks=WITHOUT)])
def test_a_view_is_saved_renamed_and_deleted(
    see: See, scene: Scene, scripts: bool
) -> None:
    screen = see("Job operator", java_script_enabled=scripts)
    page = screen.page
    screen.open(f"{list_of('archivedjob')}?status=failed")
    page.locator(".jq-views summary").click()
    page.get_by_label("Name", exact=True).fill("Broken")
    page.get_by_label("share with all").check()
    screen.press("Save")
    screen.shows("The view “Broken” was saved.")
    page.locator("[aria-current=true]", has_text="Broken").wait_for()
    assert page.url.endswith("?status=failed")
    screen.press("Manage views")
    page.get_by_label("Name", exact=True).fill("Lost")
    screen.press("Save")
    screen.shows("The view “Lost” was changed.")
    screen.open(list_of("archivedjob"))
    screen.press("Lost")
    page.wait_for_url("**/?status=failed")
    screen.press("Manage views")
    screen.press("Delete Lost")
    screen.shows("There are no saved views.")
    assert not SavedView.objects.exists()


def form_of(name: str) -> str:
    """The address of the form of a schedule."""
    return reverse("admin:jobqueue_schedules_schedule_edit", args=[quote(name)])


def test_the_next_moments_follow_what_is_typed(screen: Screen, scene: Scene) -> None:
    page = screen.open(form_of(scene.schedules["code"]))
    screen.shows("02:30:00 CE")
    page.locator("[name=rule]").fill("47 3 * * *")
    screen.shows("03:47:00 CE")
    page.locator("[name=time_zone]").fill("Asia/Tokyo")
    screen.shows("03:47:00 JST")
    page.locator("[name=rule]").fill("47 3 *")
    screen.shows("has 3 fields")
    page.locator("[name=rule]").fill("every 1 day")
    screen.shows("09:00:00 JST")
    assert Schedule.objects.get(pk=scene.schedules["code"]).rule_override is None


@WITHOUT
def test_without_scripts_a_button_shows_them_and_save_saves(
    see: See, scene: Scene
) -> None:
    screen = see(java_script_enabled=False)
    name = scene.schedules["code"]
    page = screen.open(form_of(name))
    page.locator("[name=rule]").fill("47 3 * * *")
    screen.press("Show the next moments")
    screen.shows("03:47:00 CE")
    assert Schedule.objects.get(pk=name).rule_override is None
    screen.press("Save")
    screen.shows("The schedule was saved.")
    assert Schedule.objects.get(pk=name).rule_override == "cron 47 3 * * *"
