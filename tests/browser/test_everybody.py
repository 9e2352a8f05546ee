"""Pages for everybody: on phones, by keyboard, read aloud, from the right, without
scripts."""

from __future__ import annotations

from typing import Any

import pytest

from testproject import browser
from tests.admin.endpoints import keys_of
from tests.admin.scene import build
from tests.browser.conftest import LISTS, Each, See, long_names, missing

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


def look_at_all(see: See, each: Each, script: str, **options: Any) -> dict[str, Any]:
    """What the script finds, page by page."""
    screen = see(**options)
    found: dict[str, Any] = {}

    def look(address: str) -> None:
        if of_page := screen.page.evaluate(script):
            found[address] = of_page

    each(screen, look)
    return found


WIDTHS = [
    pytest.param(320, marks=pytest.mark.slow("further widths and pages")),
    390,
    pytest.param(768, marks=pytest.mark.slow("further widths and pages")),
    pytest.param(
        1280, marks=pytest.mark.slow("further widths and pages")
    ),  # others look at a desk's width, too
    pytest.param(1920, marks=pytest.mark.slow("further widths and pages")),
]


@pytest.mark.parametrize("width", WIDTHS)
def test_all_of_a_page_is_in_sight(see: See, each: Each, width: int) -> None:
    long_names()
    viewport = {"width": width, "height": 844}
    assert look_at_all(see, each, OUT_OF_SIGHT, viewport=viewport) == {}


def test_on_a_phone_the_rows_of_lists_are_cards(
    see: See, transactional_db: None
) -> None:
    """Each cell says what it is, and its check box can be hit with a thumb."""
    keys = keys_of(build())
    screen = see(viewport=PHONE)
    for endpoint in LISTS:
        screen.open(endpoint.address(keys))
        assert screen.page.locator("#result_list tbody tr").count(), endpoint
        heads = screen.page.locator(
            "#result_list thead th:not(.action-checkbox-column) .text:visible"
        )
        assert heads.count() == 0, endpoint
        nameless = screen.page.locator("#result_list td > .jq-cell:not([data-label])")
        assert nameless.count() == 0, endpoint
        for box in screen.page.locator("#result_list .action-select").all()[:3]:
            size = box.bounding_box()
            assert size["width"] >= 24 <= size["height"], endpoint


IN_SIGHT = """() => [...document.querySelectorAll(".jq-tabs")].filter((box) => {
  const current = box.querySelector("[aria-current]");
  if (!current) return false;
  const [outer, inner] = [box, current].map((one) => one.getBoundingClientRect());
  return inner.left < outer.left - 1 || inner.right > outer.right + 1;
}).length"""


@pytest.mark.parametrize("language", ["en", "ar"])
def test_on_a_phone_the_tab_of_the_page_is_in_sight(
    see: See, transactional_db: None, settings: Any, language: str
) -> None:
    settings.LANGUAGE_CODE = language
    keys = keys_of(build())
    screen = see(viewport=PHONE)
    for endpoint in LISTS:
        screen.open(endpoint.address(keys))
        assert screen.page.evaluate(IN_SIGHT) == 0, endpoint
    screen.open("/admin/jobqueue/queuedjob/?state=lapsed")
    assert screen.page.evaluate(IN_SIGHT) == 0


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


SIZES = [
    pytest.param(PHONE, id="phone"),
    pytest.param(DESK, id="desk", marks=pytest.mark.slow("further widths and pages")),
]


@pytest.mark.parametrize("viewport", SIZES)
def test_beside_arabic_code_reads_from_the_left_and_all_is_in_sight(
    see: See, each: Each, settings: Any, viewport: dict[str, int]
) -> None:
    """Numbers and times, too."""
    settings.LANGUAGE_CODE = "ar"
    script = f"() => [...({BACKWARDS})(), ...({OUT_OF_SIGHT})()]"
    assert look_at_all(see, each, script, viewport=viewport) == {}


# Django's own markup. The label of its search box is a picture.
NOT_OURS = {"#searchbar"}


# Half of the pages on one screen, half on the other: all take minutes. What depends
# on both theme and width is for the slow ones.
ALL = slice(None)
SCREENS = [
    pytest.param(PHONE, "dark", slice(0, None, 2), id="phone-dark"),
    pytest.param(DESK, "light", slice(1, None, 2), id="desk-light"),
    *(
        pytest.param(viewport, scheme, ALL, id=f"all-{name}-{scheme}", marks=slow)
        for name, viewport in (("phone", PHONE), ("desk", DESK))
        for scheme in ("light", "dark")
        for slow in [pytest.mark.slow("further widths and pages")]
    ),
]


@pytest.mark.parametrize(("viewport", "scheme", "some"), SCREENS)
def test_axe_finds_nothing(
    see: See, each: Each, scheme: str, viewport: dict[str, int], some: slice
) -> None:
    axe = browser.axe() or missing('needs axe-core: run "make browser"')
    script = axe.read_text()
    # axe sets styles to measure
    screen = see(color_scheme=scheme, viewport=viewport, bypass_csp=True)
    found: dict[str, list[str]] = {}

    def look(address: str) -> None:
        screen.page.evaluate(script)
        report = screen.page.evaluate("axe.run({include: [['#content']]})")
        for violation in report["violations"]:
            places = [str(node["target"][0]) for node in violation["nodes"]]
            ours = [one for one in places if one not in NOT_OURS]
            if ours:
                what = f"{violation['id']} ({violation['impact']}) {ours[:3]}"
                found.setdefault(what, []).append(address)

    each(screen, look, some)
    assert found == {}


def test_two_keys_lead_to_the_results_of_a_list(
    see: See, transactional_db: None
) -> None:
    """Past the menu, the tabs and the filters, to what the list is about."""
    keys = keys_of(build())
    screen = see(viewport=DESK)
    page = screen.page
    for endpoint in LISTS:
        screen.open(endpoint.address(keys))
        page.keyboard.press("Tab")  # Django's own
        page.keyboard.press("Tab")
        focus = page.locator(":focus")
        assert focus.inner_text() == "Skip to the results", endpoint
        assert focus.bounding_box()["y"] >= 0
        page.keyboard.press("Enter")
        for _ in range(5):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.matches('tbody a')"):
                break
        else:
            rows = page.locator("#result_list tbody a").count()
            assert not rows, endpoint


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
    see: See, each: Each
) -> None:
    """Each control is of a form that is sent without one."""
    screen = see(java_script_enabled=False)
    found: dict[str, Any] = {}

    def look(address: str) -> None:
        dead = screen.page.evaluate(DEAD)
        words = screen.page.locator("#content").inner_text().split()
        if dead or len(words) < 3:
            found[address] = dead or words

    each(screen, look)
    assert found == {}
