"""A real browser, which looks at pages that Django's live server sends.

``make test`` gets Playwright and a Chromium (``testproject/browser.py``). Without them
these tests are skipped; with ``JOBQUEUE_REQUIRE_BROWSER=1``, as in CI, they fail.
Whatever the browser complains about, such as a violation of the content security
policy, fails the test.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NoReturn
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connections
from django.test import Client

from django_jobqueue.management.jobqueue.roles import ROLES, rights_of
from testproject import browser
from tests.admin.conftest import fresh_figures as fresh_figures
from tests.support.waiting import eventually

WIDE = {"width": 1280, "height": 900}
PATIENCE = 60_000  # milliseconds; on a busy machine, workers and pages take their time

# Clocks and timers of pages run five times as fast.
HASTE = """(() => {
  const [start, now] = [Date.now(), Date.now];
  const [timeout, interval] = [setTimeout, setInterval];
  Date.now = () => start + 5 * (now() - start);
  window.setTimeout = (call, ms, ...more) => timeout(call, ms / 5, ...more);
  window.setInterval = (call, ms, ...more) => interval(call, ms / 5, ...more);
})()"""


class Screen:
    """What somebody sees in a browser of their own."""

    def __init__(self, context: Any, base: str) -> None:
        context.set_default_timeout(PATIENCE)
        self.base = base
        self.tried = ""
        self.page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._listen)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, address: str) -> Any:
        """Go to this address of the site; returns the page."""
        response = self.page.goto(self.base + address)
        assert response.status < 500, address
        return self.page

    def press(self, name: str) -> None:
        """Press the button or follow the link of this name."""
        button = self.page.get_by_role("button", name=name, exact=True)
        link = self.page.get_by_role("link", name=name, exact=True)
        button.or_(link).first.click()

    def hastens(self) -> None:
        """What the pages do after seconds, they do earlier."""
        self.page.add_init_script(HASTE)

    def refreshes(self) -> None:
        """Refresh each second, beginning now: more often than can be chosen."""
        choice = self.page.locator("[data-jq-every]")
        choice.evaluate("one => one.add(new Option('1', '1'))")
        choice.select_option("1")
        self.page.evaluate("document.activeElement.blur()")

    @property
    def path(self) -> str:
        """The address, without the site."""
        return urlsplit(self.page.url).path

    @property
    def text(self) -> str:
        """All that can be read."""
        found: str = self.page.locator("body").inner_text()
        return " ".join(found.split())

    def shows(self, text: str) -> None:
        """Wait until the page shows this text."""
        self.page.get_by_text(text).first.wait_for()

    def comes(self, text: str) -> None:
        """Look at the page again and again until it shows this text."""

        def look() -> bool:
            if text not in self.text:
                self.page.reload()
            return text in self.text

        eventually(look, what=f"{text!r} on {self.path}")

    def _listen(self, message: Any) -> None:
        address = message.location["url"]
        if address == self.tried and message.text.startswith("Failed to load"):
            return
        if message.type in ("error", "warning") and "favicon" not in address:
            self.complaints.append(f"{message.text} at {address}")


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """The browser. Playwright runs a loop in this thread, where Django's ORM, which is
    used here between two looks at a page, would refuse to work; so would other tests
    that run a loop, which is why it ends before the next one outside of this folder."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing('needs Playwright: run "make browser"')
    found = browser.find()
    if found is None:
        missing(browser.NEEDS)
    # While Playwright's loop runs, Django has other connections in this thread; those
    # of before would stay open until it ends, and look like somebody else's.
    connections.close_all()
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        launched = found.launch(playwright)
        yield launched
        launched.close()
        connections.close_all()


def missing(need: str) -> NoReturn:
    """Skip the test, or fail it where a browser is required."""
    if os.environ.get("JOBQUEUE_REQUIRE_BROWSER"):
        pytest.fail(need)
    pytest.skip(need)


See = Callable[..., Screen]


@pytest.fixture
def see(chromium: Any, live_server: Any) -> Iterator[See]:
    """Open a browser: ``see("Job viewer")`` has the rights of this role, ``see()`` all
    of them; further arguments are Playwright's for a context."""
    made: list[tuple[Any, Screen]] = []

    def see(role: str = "", **options: Any) -> Screen:
        context = chromium.new_context(**{"viewport": WIDE, **options})
        context.add_cookies([_session_of(role, live_server.url)])
        made.append((context, Screen(context, live_server.url)))
        return made[-1][1]

    yield see
    for context, _screen in made:
        context.close()
    assert [screen.complaints for _context, screen in made if screen.complaints] == []


@pytest.fixture
def screen(see: See) -> Screen:
    """The browser of a superuser."""
    return see()


def _session_of(role: str, url: str) -> dict[str, str]:
    """The cookie of one who logged in."""
    cookie = client_of(role).cookies[settings.SESSION_COOKIE_NAME]
    return {"name": cookie.key, "value": cookie.value, "url": url}


def client_of(role: str = "") -> Client:
    """Django's own client for one with the rights of this role, or with all."""
    user, created = get_user_model().objects.get_or_create(
        username=role.lower().replace(" ", "-") or "anna",
        defaults={"is_staff": True, "is_superuser": not role},
    )
    if created and role:
        user.user_permissions.set(_rights_of(role))
    client = Client()
    client.force_login(user)
    return client


def _rights_of(role: str) -> Any:
    names = [
        right.rpartition(".")[2]
        for one in ROLES[: ROLES.index(role) + 1]
        for right in rights_of(one)
    ]
    return Permission.objects.filter(
        content_type__app_label__startswith="jobqueue", codename__in=names
    )
