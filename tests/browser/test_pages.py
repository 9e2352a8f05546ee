"""Every page in a browser: no complaint of the policy; and lists at every width."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.utils import quote

from django_jobqueue.models import FailureRollup
from django_jobqueue.text import timezones
from tests.admin.endpoints import keys_of
from tests.admin.scene import FAIL, build
from tests.browser.conftest import LISTS, Each, Screen, See, long_names
from tests.support.selection import some_slow

# Each test opens a part of all pages; beside other tests that takes a while.
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_no_page_asks_for_what_a_strict_policy_forbids(
    screen: Screen, each: Each
) -> None:
    each(screen, lambda address: screen.page.wait_for_load_state())
    assert screen.complaints == []


HIDDEN = """() => {
  const box = document.querySelector(".results");
  const edge = box.getBoundingClientRect().right + 1;
  const cells = [...box.querySelectorAll("tbody th, tbody td")];
  const places = cells.map((cell) => cell.getBoundingClientRect());
  return places.filter((place) => place.right > edge || !place.width).length;
}"""


@pytest.mark.parametrize("width", some_slow([390, 768, 1280, 1440, 1920], [390, 1280]))
def test_no_column_of_a_list_is_cut_off(
    see: See, transactional_db: None, width: int
) -> None:
    """Beside the admin's own menu and the filters, which are open."""
    keys = keys_of(build())
    long_names()
    screen = see(viewport={"width": width, "height": 900})
    for endpoint in LISTS:
        screen.open(endpoint.address(keys))
        cells = screen.page.locator(".results tbody td").count()
        assert cells
        assert screen.page.evaluate(HIDDEN) == 0, endpoint


SIDEWAYS = """() => [...document.querySelectorAll(".jq-matrix td")].filter((cell) => {
  const {left, right} = cell.getBoundingClientRect();
  return left < 0 || right > innerWidth;
}).length"""


@pytest.mark.parametrize("query", ["window=24h", "window=7d", "by=release"])
def test_all_of_the_failures_by_time_is_seen_on_a_phone(
    see: See, transactional_db: None, query: str
) -> None:
    group = build().group
    now = timezones.now()
    for hours in range(24):
        FailureRollup.objects.create(
            fingerprint=group,
            bucket=now - timedelta(hours=hours),
            release=f"2026.{hours % 8}",
            failed=10**hours % 99_999,
        )
    screen = see(viewport={"width": 390, "height": 800})
    screen.open(f"/admin/jobqueue/failuregroup/matrix/?{query}")
    assert screen.page.locator(".jq-matrix td a").count() > 1
    assert screen.page.evaluate(SIDEWAYS) == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_what_saves_the_overrides_is_seen_at_once(
    see: See, transactional_db: None, width: int
) -> None:
    build()
    screen = see(viewport={"width": width, "height": 700})
    screen.open(f"/admin/jobqueue/jobtype/{quote(FAIL)}/change/")
    assert screen.page.evaluate("document.body.scrollHeight") > 1_400
    place = screen.page.locator("input[name=_save]").bounding_box()
    assert place is not None
    assert place["y"] + place["height"] <= 700


def test_where_a_list_is_narrow_each_cell_says_its_name(
    see: See, transactional_db: None
) -> None:
    build()
    screen = see(viewport={"width": 1280, "height": 900})
    screen.open("/admin/jobqueue/queuedjob/")
    cell = screen.page.locator(".field-reasons .jq-cell").first
    assert cell.is_visible()
    assert "Why not running?" in cell.evaluate(
        "(one) => getComputedStyle(one, '::before').content"
    )
    assert screen.page.locator("#action-toggle").is_visible()
