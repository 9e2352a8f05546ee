"""What is shown of one thing: facts with their names, and longer texts below them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from django_jobqueue.domain.followers import described
from django_jobqueue.logs import one_line
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.time_formats import local

GAP: Final = "  "


def print_facts(console: Console, facts: Iterable[tuple[str, str]]) -> None:
    """Print each fact; one without a value is left out. Further lines of a value stand
    below its first one, so that none looks like another fact."""
    shown = [(name, text) for name, text in facts if text]
    width = max((len(name) for name, _ in shown), default=0)
    for name, text in shown:
        first, *others = text.rstrip("\n").split("\n")
        console.print(f"{name:{width}}{GAP}{one_line(first)}")
        for line in others:
            console.print(f"{'':{width}}{GAP}{one_line(line)}".rstrip())


def print_text(console: Console, title: str, text: str) -> None:
    """Print a longer text below its title, if there is one; its lines stay."""
    if not text:
        return
    console.print()
    console.print(console.style.MIGRATE_HEADING(title))
    for line in text.rstrip("\n").split("\n"):
        console.print(one_line(line))


def as_json(value: Any) -> str:
    """A value as JSON text that programs and people read; moments are in ISO 8601."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=_written)


def moment_text(moment: datetime | None) -> str:
    """A moment in the current time zone; empty for none."""
    return "" if moment is None else local(moment)


def listed(texts: Iterable[object]) -> str:
    """Texts in one line."""
    return ", ".join(map(str, texts))


def followers_text(followers: object) -> Iterator[tuple[str, str]]:
    """The job types of followers, by the option that names them."""
    for option, names in described(followers):
        yield option.replace("_", " ").capitalize(), listed(names)


def lines_of(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Rows of few texts, each in a line; further lines of a text are indented."""
    for row in rows:
        yield GAP.join(filter(None, map(str, row))).replace("\n", f"\n{3 * GAP}")


def _written(value: object) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)
