"""The pages of the documentation, and the examples in them.

An example is a fenced block. ``<!-- run -->`` in the line above it says that it is run,
in the order of the page and in one namespace for the whole page. A comment that begins
with ``run`` or ``check`` and goes on in further lines is run, too, and not shown: it
makes what the examples need, and looks at what they did.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"

_PART = re.compile(
    r"""
      ^<!--\ run\ -->\n```(?P<run>\w+)\n(?P<shown>.*?)^```$
    | ^```(?P<language>\w+)\n(?P<block>.*?)^```$
    | ^<!--\ (?:run|check)\n(?P<hidden>.*?)^-->$
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Example:
    """A block of a page."""

    page: str
    line: int
    language: str
    text: str
    is_run: bool
    is_shown: bool

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@cache
def pages() -> dict[str, str]:
    """The text of every page, by its path."""
    found = [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]
    return {
        str(path.relative_to(ROOT)): path.read_text()
        for path in sorted(found)
        if "_build" not in path.parts
    }


def examples(page: str) -> Iterator[Example]:
    """The blocks of a page, in order."""
    text = pages()[page]
    for match in _PART.finditer(text):
        name = next(n for n in ("shown", "block", "hidden") if match[n] is not None)
        yield Example(
            page=page,
            line=text.count("\n", 0, match.start(name)) + 1,
            language=match["run"] or match["language"] or "python",
            text=match[name],
            is_run=name != "block",
            is_shown=name != "hidden",
        )
