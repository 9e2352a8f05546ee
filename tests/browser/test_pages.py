"""Single pages in a browser, on narrow screens and wide ones."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.utils import quote

from django_jobqueue.models import FailureRollup
from django_jobqueue.text import timezones
from tests.admin.scene import FAIL, build
from tests.browser.conftest import See

pytestmark = pytest.mark.browser


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
