"""Every page in a browser: no complaint of the policy; and lists at every width."""

from __future__ import annotations

import pytest

from tests.admin.endpoints import keys_of
from tests.admin.scene import build
from tests.browser.conftest import LISTS, Each, Screen, See, long_names

# Each test opens every page; beside other tests that takes a while.
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


@pytest.mark.parametrize("width", [390, 768, 1280, 1440, 1920])
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
