"""Every page in a browser: no complaint of the policy, no width too small, no script
needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from django_jobqueue.models import JobType
from testproject import browser
from tests.admin.endpoints import ALL, Keys, keys_of
from tests.admin.scene import archived, build, queued
from tests.browser.conftest import Screen, See, client_of, missing

# Each test opens every page; beside other tests that takes a while.
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

# The box of the search is Django's own: its label is a picture.
OURS = "{include: [['#content']], exclude: [['#searchbar']]}"
SERIOUS = ("serious", "critical")
Each = Callable[[Screen, Callable[[str], Any]], None]
WIDTHS = (320, 360, 1280)


def pages(client: Client, keys: Keys) -> list[str]:
    """The address of every page, with the questions of verbs."""
    found = []
    for endpoint in ALL:
        address = endpoint.address(keys)
        if endpoint.route and "<" not in endpoint.route:  # a verb needs to know of what
            address += f"?keys={keys[endpoint.model]}"
        response = client.get(address)
        if response.status_code == 200 and "html" in response.headers["Content-Type"]:
            found.append(address)
    return found


@pytest.fixture
def each(transactional_db: None) -> Each:
    """Open every page in a browser and look at it."""
    addresses = pages(client_of(), keys_of(build()))
    assert len(addresses) > 20

    def each(screen: Screen, look: Callable[[str], Any]) -> None:
        for address in addresses:
            screen.open(address)
            look(address)

    return each


def test_no_page_asks_for_what_a_strict_policy_forbids(
    screen: Screen, each: Each
) -> None:
    each(screen, lambda address: screen.page.wait_for_load_state())
    assert screen.complaints == []


LISTS = [endpoint for endpoint in ALL if endpoint.is_list and endpoint.model]
LONG = "accounting.reconciliation.jobs.import_statements_of_every_bank"
HIDDEN = """() => {
  const box = document.querySelector(".results");
  const edge = box.getBoundingClientRect().right + 1;
  const cells = [...box.querySelectorAll("tbody th, tbody td")];
  return cells.filter((cell) => cell.getBoundingClientRect().right > edge).length;
}"""


@pytest.mark.parametrize("width", [390, 1280, 1440, 1920])
def test_no_column_of_a_list_is_cut_off(
    see: See, transactional_db: None, width: int
) -> None:
    """Beside the admin's own menu and the filters, which are open."""
    rows = build()
    keys = keys_of(rows)
    JobType.objects.create(name=LONG, queue="end-of-month")
    for number in (0, 7):
        queued(LONG, queue="end-of-month", attempts=number, priority=-100)
        archived(LONG, "failed", run_ms=10**number, tags=["first", "second", "third"])
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


COVERED = """() => {
  const shown = (one) => one.getBoundingClientRect();
  const meet = (a, b) =>
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const all = (selector) => [...document.querySelectorAll(selector)];
  const buttons = all(".object-tools a, .object-tools button");
  const others = all(".jq-top a, .jq-top input, .jq-top button");
  return buttons
    .filter((one) => others.some((other) => meet(shown(one), shown(other))))
    .map((one) => one.textContent.trim());
}"""


@pytest.mark.parametrize("width", WIDTHS)
def test_the_buttons_of_an_object_cover_nothing_of_the_tabs_and_the_jump_box(
    see: See, each: Each, width: int
) -> None:
    screen = see(viewport={"width": width, "height": 800})
    covering: dict[str, list[str]] = {}

    def look(address: str) -> None:
        if found := screen.page.evaluate(COVERED):
            covering[address] = found

    each(screen, look)
    assert covering == {}


@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_is_no_wider_than_its_window(see: See, each: Each, width: int) -> None:
    screen = see(viewport={"width": width, "height": 800})
    wide: dict[str, int] = {}

    def look(address: str) -> None:
        script = "document.documentElement.scrollWidth - window.innerWidth"
        more = screen.page.evaluate(script)
        if more > 0:
            wide[address] = more

    each(screen, look)
    assert wide == {}


def test_pages_are_whole_without_scripts(see: See, each: Each) -> None:
    screen = see(java_script_enabled=False)
    empty: list[str] = []

    def look(address: str) -> None:
        if len(screen.page.locator("#content").inner_text().split()) < 3:
            empty.append(address)

    each(screen, look)
    assert empty == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(see: See, each: Each, scheme: str) -> None:
    axe = browser.axe() or missing('needs axe-core: run "make browser"')
    script = axe.read_text()
    screen = see(color_scheme=scheme, bypass_csp=True)  # axe sets styles to measure
    found: dict[str, list[str]] = {}

    def look(address: str) -> None:
        screen.page.evaluate(script)
        report = screen.page.evaluate(f"axe.run({OURS})")
        for violation in report["violations"]:
            if violation["impact"] in SERIOUS:
                places = [node["target"][0] for node in violation["nodes"][:3]]
                found.setdefault(f"{violation['id']} {places}", []).append(address)

    each(screen, look)
    assert found == {}
