"""A browser that takes pictures of pages, and makes them small."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from PIL import Image
from playwright.sync_api import sync_playwright

from testproject.browser import NEEDS, find

TALLEST = 1_500  # pixels; what is below is cut off
COLOURS = 256
METHOD = Image.Quantize.MAXCOVERAGE  # keeps what is rare: the amber of a note
NO_SIDEBAR = "localStorage.setItem('django.admin.navSidebarIsOpen', 'false')"


@dataclass(frozen=True)
class Look:
    """How pages are looked at."""

    name: str  # ends the file's name
    width: int = 1280
    scheme: str = "light"


LOOKS = (Look("light"), Look("dark", scheme="dark"), Look("narrow", width=390))
OTHER_LOOKS = (
    Look("narrow-dark", width=390, scheme="dark"),
    Look("wide", width=1920),
    Look("wide-dark", width=1920, scheme="dark"),
)


class Camera:
    """Takes pictures of pages of one site."""

    def __init__(
        self,
        browser: Any,
        site: str,
        session: dict[str, str],
        before: Callable[[], object],
        looks: Sequence[Look],
    ) -> None:
        self._browser = browser
        self._site = site
        self._session = session
        self._before = before
        self._looks = looks

    def take(self, address: str, name: str, folder: Path) -> int:
        """Write a picture for each look; returns their bytes."""
        return sum(self._take(address, name, folder, look) for look in self._looks)

    def _take(self, address: str, name: str, folder: Path, look: Look) -> int:
        context = self._browser.new_context(
            viewport={"width": look.width, "height": 700}, color_scheme=look.scheme
        )
        context.add_cookies([self._session])
        context.add_init_script(NO_SIDEBAR)
        page = context.new_page()
        self._before()
        response = page.goto(self._site + address)
        assert response.status == 200, (address, response.status)
        assert urlsplit(page.url).path == urlsplit(address).path, (address, page.url)
        height = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size(
            {"width": look.width, "height": min(max(height, 500), TALLEST)}
        )
        taken = Image.open(BytesIO(page.screenshot(animations="disabled")))
        context.close()
        file = folder / f"{name}-{look.name}.png"
        small = taken.convert("RGB").quantize(COLOURS, METHOD, dither=Image.Dither.NONE)
        small.save(file, optimize=True)
        return file.stat().st_size


@contextmanager
def camera(
    site: str,
    session: dict[str, str],
    before: Callable[[], object],
    looks: Sequence[Look] = LOOKS,
) -> Iterator[Camera]:
    """A camera for this site, for who has this cookie; ``before`` is called before
    each picture."""
    chromium = find()
    if chromium is None:
        raise SystemExit(f"This {NEEDS}.")
    with sync_playwright() as playwright:
        browser = chromium.launch(playwright)
        yield Camera(browser, site, session, before, looks)
        browser.close()
