"""The next moments of a rule in a browser, while it is typed and without scripts."""

from __future__ import annotations

import pytest
from django.contrib.admin.utils import quote
from django.urls import reverse

from django_jobqueue.models import Schedule
from tests.admin.scene import Scene, build
from tests.browser.conftest import Screen, See

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def scene(transactional_db: None) -> Scene:
    """Rows of every state."""
    return build()


def form_of(name: str) -> str:
    """The address of the form of a schedule."""
    return reverse("admin:jobqueue_schedule_edit", args=[quote(name)])


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
