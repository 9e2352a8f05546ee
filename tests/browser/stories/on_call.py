"""Somebody on call, who has a browser and the admin, and whose clicks are counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.browser.conftest import Screen

MOST_CLICKS: Final = 6


class OnCall:
    """Uses what the screen shows. A click is a link, a button, a box, a fold, or a
    text with Enter; nothing else goes from page to page."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.page: Any = screen.page
        self.clicks: list[str] = []

    def opens(self, address: str) -> None:
        """Begin here, as with a bookmark or the link of an alert."""
        self.screen.open(address)

    def press(self, name: str, *, within: str = "body", exact: bool = True) -> None:
        """Press the first button, or follow the first link, of this name."""
        place = self.page.locator(within)
        button = place.get_by_role("button", name=name, exact=exact)
        link = place.get_by_role("link", name=name, exact=exact)
        self._click(button.or_(link).first, name)

    def check(self, name: str) -> None:
        """Tick a box."""
        self._click(self.page.get_by_role("checkbox", name=name), name)

    def unfold(self, name: str) -> None:
        """Open what is folded below this line."""
        self._click(self.page.locator("summary", has_text=name).first, name)

    def fill(self, label: str, text: str, *, within: str = "body") -> None:
        """Write into a field; the click is what comes after."""
        self.page.locator(within).get_by_label(label).fill(text)

    def enter(self, text: str, *, into: str) -> None:
        """Write into the field with this selector, and press Enter."""
        field = self.page.locator(into)
        field.fill(text)
        with self.page.expect_navigation():
            field.press("Enter")
        self.clicks.append(text)

    def download(self, name: str) -> str:
        """Follow a link to a file; returns the text of the file."""
        with self.page.expect_download() as expected:
            self.press(name)
        return Path(expected.value.path()).read_bytes().decode()

    def sees(self, *texts: str) -> None:
        """Wait until the page shows these texts, as it is or when it refreshes itself;
        nothing is touched."""
        for text in texts:
            self.screen.shows(text)

    def waits_for(self, text: str) -> None:
        """Load the page again and again until it shows this text."""
        self.screen.comes(text)

    @property
    def text(self) -> str:
        """All that can be read."""
        return self.screen.text

    def is_done(self) -> None:
        """The story is told: it took few clicks."""
        assert 0 < len(self.clicks) <= MOST_CLICKS, self.clicks

    def _click(self, what: Any, name: str) -> None:
        what.click()
        self.clicks.append(name)
