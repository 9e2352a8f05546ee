"""Every page for everybody: on phones, by keyboard, read aloud, from the right, without
scripts. A page is opened once for all that is asked of it on one screen.

``make test`` looks at the pages that differ most, ``make test-all`` at every one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from django_jobqueue.models import JobType
from testproject import browser
from tests.admin.endpoints import ALL, Endpoint, keys_of
from tests.admin.scene import archived, build, queued
from tests.browser.conftest import Screen, See, missing

# Each test opens a part of all pages; beside other tests that takes a while.
pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}

# What is out of sight: wider than the window, cut off by what surrounds it, or below a
# button. What scrolls by itself may be wider; its width is on its own.
OUT_OF_SIGHT = """() => {
  const found = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) found.push(`page: ${root.scrollWidth}`);
  const hidden = ".jq-hidden, .visually-hidden, [hidden], dialog, option, thead";
  const walker = document.createTreeWalker(
    document.querySelector("#content"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!node.data.trim() || node.parentElement.closest(hidden)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (!box.width || !node.parentElement.checkVisibility()) continue;
    let [left, right] = [0, root.clientWidth];
    for (let one = node.parentElement; one.id !== "content"; one = one.parentElement) {
      const overflow = getComputedStyle(one).overflowX;
      if (overflow === "visible") continue;
      const around = one.getBoundingClientRect();
      if (overflow === "auto" || overflow === "scroll") {
        [left, right] = [-Infinity, Infinity];
        break;
      }
      [left, right] = [Math.max(left, around.left), Math.min(right, around.right)];
    }
    if (box.left < left - 1 || box.right > right + 1) found.push(node.data.trim());
  }
  const shown = (one) => one.getBoundingClientRect();
  const meet = (a, b) =>
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const all = (selector) => [...document.querySelectorAll(selector)];
  const others = all(".jq-top a, .jq-top input, .jq-top button");
  for (const one of all(".object-tools a, .object-tools button")) {
    if (others.some((other) => meet(shown(one), shown(other))))
      found.push(`covers the tabs: ${one.textContent.trim()}`);
  }
  for (const box of all("#result_list input.action-select")) {
    const row = box.closest("tr");
    for (const link of row.querySelectorAll("a, .jq-id"))
      if (meet(shown(box), shown(link))) found.push(`covers: ${link.textContent}`);
  }
  return found;
}"""

# Columns of a list that are cut off, beside the admin's menu and the open filters.
CUT_OFF = """() => {
  const box = document.querySelector(".results");
  if (!box) return [];
  const edge = box.getBoundingClientRect().right + 1;
  return [...box.querySelectorAll("tbody th, tbody td")].filter((cell) => {
    const place = cell.getBoundingClientRect();
    return place.right > edge || !place.width;
  }).map((cell) => `cut off: ${cell.textContent.trim()}`);
}"""

# The tab of the page is not within the row of tabs, which scrolls.
TAB_OUT_OF_SIGHT = """() => [...document.querySelectorAll(".jq-tabs")].filter((box) => {
  const current = box.querySelector("[aria-current]");
  if (!current) return false;
  const [outer, inner] = [box, current].map((one) => one.getBoundingClientRect());
  return inner.left < outer.left - 1 || inner.right > outer.right + 1;
}).map((box) => `the tab: ${box.textContent.trim()}`)"""

IN_SIGHT = f"() => [...({OUT_OF_SIGHT})(), ...({CUT_OFF})()]"

# On phones, the rows of lists are cards: no heads are shown, each cell says what it is,
# and its check box can be hit with a thumb.
NO_CARDS = """() => {
  const all = (selector) => [...document.querySelectorAll(`#result_list ${selector}`)];
  const heads = all("thead th:not(.action-checkbox-column) .text");
  const small = (one) => {
    const {width, height} = one.getBoundingClientRect();
    return width < 24 || height < 24;
  };
  return [
    ...heads.filter((head) => head.checkVisibility()),
    ...all("td > .jq-cell:not([data-label])"),
    ...all(".action-select").slice(0, 3).filter(small),
    ...(all("tbody tr").length ? [] : [document.body]),
  ].map((one) => one.outerHTML);
}"""

CARDS_AND_TABS = f"() => [...({NO_CARDS})(), ...({TAB_OUT_OF_SIGHT})()]"

RUN_AXE = "axe.run({include: [['#content']]}, {resultTypes: ['violations']})"

# Django's own markup. The label of its search box is a picture.
NOT_OURS = {"#searchbar"}


Page = tuple[Endpoint, str]  # with its address
PARTS = 4  # of all pages; a test looks at one of them
every_page = pytest.mark.slow("every page, and further widths and schemes")
LISTS = [e for e in ALL if e.is_list and e.model not in ("", "overview")]
LONG = "accounting.reconciliation.jobs.import_statements_of_every_bank"
# The overview, lists, objects, figures, forms, and questions before something is done.
DIFFERENT = {
    "/",
    "jobtype",
    "queuedjob",
    "archivedjob/<id>/change",
    "failuregroup/<id>/change",
    "jobtype/<id>/change",
    "queuedjob/<id>/change",
    "failuregroup/matrix",
    "jobtype/releases",
    "queuedjob/cancel",
    "schedule/<id>/edit",
}


def long_names() -> None:
    """Rows that need room."""
    JobType.objects.create(name=LONG, queue="end-of-month")
    for number in (0, 7):
        queued(LONG, queue="end-of-month", attempts=number, priority=-100)
        archived(LONG, "failed", run_ms=10**number, tags=["first", "second", "third"])


@pytest.fixture(
    params=[None, *(pytest.param(n, marks=every_page) for n in range(PARTS))], ids=str
)
def part(request: pytest.FixtureRequest) -> int | None:
    """Which part of all pages is looked at; None is those that differ most."""
    found: int | None = request.param
    return found


@pytest.fixture
def pages(transactional_db: None, part: int | None) -> list[Page]:
    """Pages of every kind, the questions of verbs among them, about rows of every state
    and some that need room."""
    keys = keys_of(build())
    long_names()
    found = []
    for endpoint in ALL:
        address = endpoint.address(keys)
        if endpoint.route and "<" not in endpoint.route:  # a verb needs to know of what
            address += f"?keys={keys[endpoint.model]}"
        if part is not None or (endpoint.name or "/") in DIFFERENT:
            found.append((endpoint, address))
    if part is None:
        assert len(found) == len(DIFFERENT)
        return found
    return found[part::PARTS]


def look_at_each(
    screen: Screen, pages: list[Page], look: Callable[[Endpoint], Any]
) -> None:
    """Open each of these that is a page, and look at it; nothing may be found."""
    found = {}
    seen = 0
    for endpoint, address in pages:
        if is_page(screen, address):
            seen += 1
            if of_page := look(endpoint):
                found[address] = of_page
    assert found == {}
    assert seen == len(pages) or len(pages) > len(DIFFERENT) < 3 * seen


def is_page(screen: Screen, address: str) -> bool:
    """Go to this address; False if it is none of a page, but a file, say, or a form
    that is for no one, of which the browser complains."""
    screen.tried = screen.base + address
    try:
        response = screen.page.goto(screen.tried)
    except Exception as error:
        if "Download is starting" in str(error):
            return False
        raise
    assert response.status < 500, address
    html = "html" in response.headers["content-type"]
    return html and response.status == 200


@pytest.fixture(scope="module")
def axe() -> str:
    """The script that checks accessibility."""
    return (browser.axe() or missing('needs axe-core: run "make browser"')).read_text()


def barriers(screen: Screen, axe: str) -> list[str]:
    """What axe finds."""
    screen.page.evaluate(axe)
    found = []
    for violation in screen.page.evaluate(RUN_AXE)["violations"]:
        places = [str(node["target"][0]) for node in violation["nodes"]]
        if ours := [one for one in places if one not in NOT_OURS]:
            found.append(f"{violation['id']} ({violation['impact']}) {ours[:3]}")
    return found


def misleads(screen: Screen) -> list[str]:
    """Two keys lead past the menu, the tabs and the filters to the rows of a list."""
    page = screen.page
    page.keyboard.press("Tab")  # Django's own
    page.keyboard.press("Tab")
    focus = page.locator(":focus")
    if focus.inner_text() != "Skip to the results" or focus.bounding_box()["y"] < 0:
        return [f"the second key leads to {focus.inner_text()}"]
    page.keyboard.press("Enter")
    for _ in range(5):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('tbody a')"):
            return []
    return ["leads to no row"] * page.locator("#result_list tbody a").count()


# Of each scheme the screens on which axe looks at pages, and which pages: it takes its
# time.
HALF = [("dark", [PHONE], slice(0, None, 2)), ("light", [DESK], slice(1, None, 2))]
WHOLE = [(scheme, [PHONE, DESK], slice(None)) for scheme in ("dark", "light")]


def test_all_of_a_page_is_in_sight_and_at_hand(
    see: See, pages: list[Page], axe: str, part: int | None
) -> None:
    for scheme, sizes, some in HALF if part is None else WHOLE:
        # axe sets styles to measure
        screen = see(viewport=PHONE, color_scheme=scheme, bypass_csp=True)
        axed = partial(barriers, screen, axe)
        look = partial(in_sight_and_at_hand, screen, axed, sizes)
        look_at_each(screen, pages[some], look)


def in_sight_and_at_hand(
    screen: Screen,
    axed: Callable[[], list[str]],
    sizes: list[dict[str, int]],
    endpoint: Endpoint,
) -> list[Any]:
    """What is not, on both screens; and on some what axe says."""
    found: list[Any] = []
    for size in (PHONE, DESK):
        screen.page.set_viewport_size(size)
        found += screen.page.evaluate(IN_SIGHT)
        if endpoint in LISTS and size == PHONE:
            found += screen.page.evaluate(CARDS_AND_TABS)
        elif endpoint in LISTS:
            found += misleads(screen)
        if size in sizes:
            found += axed()
    screen.page.set_viewport_size(PHONE)
    return found


@every_page
@pytest.mark.parametrize("width", [320, 768, 1440, 1920])
def test_all_of_a_page_is_in_sight_at_every_width(
    see: See, pages: list[Page], width: int
) -> None:
    screen = see(viewport={"width": width, "height": 844})
    look_at_each(screen, pages, lambda _: screen.page.evaluate(IN_SIGHT))


# From the right: text of our own has no Arabic letters here, so each piece of it must
# be read from the left, whatever is around it.
BACKWARDS = """() => {
  const found = [];
  const other = /[\\u0590-\\u08ff\\ufb1d-\\ufefc]/;
  const walker = document.createTreeWalker(
    document.querySelector("#content"), NodeFilter.SHOW_TEXT);
  const hidden = ".jq-hidden, .visually-hidden, option, dialog, svg";
  const ours = ".jq, .jq-cell, .jq-list-head, .jq-paginator";
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const parent = node.parentElement;
    const text = node.data.trimEnd();
    const start = text.length - text.trimStart().length;
    if (!parent.closest(ours) || parent.closest(hidden)) continue;
    if (text.length - start < 2 || other.test(text)) continue;
    if (!parent.checkVisibility()) continue;
    const edge = (at) => {
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + 1);
      return range.getBoundingClientRect();
    };
    const [first, last] = [edge(start), edge(text.length - 1)];
    if (!first.width || !last.width || Math.abs(first.top - last.top) > 2) continue;
    if (first.left > last.left) found.push(text.trim());
  }
  const code = "pre, code, .jq-id, .jq-json, .jq-traceback, .jq-frames, .jq-lines";
  for (const one of document.querySelectorAll(code))
    if (getComputedStyle(one).direction !== "ltr") found.push(one.outerHTML);
  return found;
}"""


@pytest.mark.parametrize("viewport", [PHONE, pytest.param(DESK, marks=every_page)])
def test_beside_arabic_code_reads_from_the_left_and_all_is_in_sight(
    see: See, pages: list[Page], settings: Any, viewport: dict[str, int]
) -> None:
    """Numbers and times, too. And no page asks for what a strict policy forbids, of
    which the browser would complain."""
    settings.LANGUAGE_CODE = "ar"
    screen = see(viewport=viewport)
    script = f"() => [...({BACKWARDS})(), ...({IN_SIGHT})()]"

    def look(endpoint: Endpoint) -> list[Any]:
        found: list[Any] = screen.page.evaluate(script)
        if endpoint in LISTS:
            found += screen.page.evaluate(TAB_OUT_OF_SIGHT)
        return found

    look_at_each(screen, pages, look)


DEAD = """() => {
  const found = [];
  for (const one of document.querySelectorAll(
    "#content button, #content select, #content input, #content [role=button]")) {
    if (!one.checkVisibility() || one.type === "hidden") continue;
    if (!one.form && !one.closest("a[href]:not([href='#'])")) found.push(one.outerHTML);
    if (one.type === "button" || one.id === "action-toggle") found.push(one.outerHTML);
  }
  return found;
}"""


def test_without_scripts_pages_are_whole_and_no_control_is_dead(
    see: See, pages: list[Page]
) -> None:
    """Each control is of a form that is sent without one."""
    screen = see(java_script_enabled=False)

    def look(_: Endpoint) -> Any:
        words = screen.page.locator("#content").inner_text().split()
        return screen.page.evaluate(DEAD) or (words if len(words) < 3 else [])

    look_at_each(screen, pages, look)
