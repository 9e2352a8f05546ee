"""No template says a word that translators do not get."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from tests.architecture.source import PACKAGE

TEMPLATES = sorted(PACKAGE.rglob("*.html"))
NO_TEXT = re.compile(
    r"""\{%-?\s*blocktrans(?:late)?\b.*?\{%\s*endblocktrans(?:late)?\s*%\}
      | \{%\s*block\ (?:bodyclass|coltype)\b.*?\{%\s*endblock\s*%\}
      | <kbd>.*?</kbd>
      | \{%\s*comment\b.*?\{%\s*endcomment\s*%\}
      | \{\#.*?\#\} | \{%.*?%\} | \{\{.*?\}\}""",
    re.VERBOSE | re.DOTALL,
)
SAID = ("alt", "aria-description", "aria-label", "placeholder", "title")
WORD = re.compile(r"[^\W\d_]{2,}")


class Words(HTMLParser):
    """Collects the words that are in the text itself."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in SAID:
                self.handle_data(value or "")

    def handle_data(self, data: str) -> None:
        self.found += WORD.findall(data)


def test_every_word_of_a_template_is_translated() -> None:
    assert len(TEMPLATES) > 50
    said = {}
    for template in TEMPLATES:
        words = Words()
        words.feed(NO_TEXT.sub("", template.read_text()))
        said[template.name] = words.found
    assert {name: found for name, found in said.items() if found} == {}
