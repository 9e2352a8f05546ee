"""What a run came to: read, written, and asked for medians."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.figures import Summary


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One trial. A value of None: not in the time that was given."""

    question: str
    case: str
    system: str
    round: int
    values: Mapping[str, float | None]


@dataclass(kw_only=True)
class Results:
    """All trials of a run, and what it was made on and with."""

    date: str
    machine: Mapping[str, str]
    versions: Mapping[str, str]
    server: Mapping[str, str]
    quick: bool
    rounds: int
    seconds: float = 0.0  # that the run took
    left_out: Mapping[str, str] = field(default_factory=dict)  # systems, and why
    failed: list[str] = field(default_factory=list)  # trials that came to nothing
    finished: list[str] = field(default_factory=list)  # questions
    entries: list[Entry] = field(default_factory=list)

    def forget_unfinished(self) -> None:
        """Drop the trials of a question that was not asked to its end."""
        self.entries = [e for e in self.entries if e.question in self.finished]
        self.failed = [f for f in self.failed if f.partition("/")[0] in self.finished]

    def values(self, case: str, system: str, key: str) -> list[float | None]:
        """A figure of all rounds; ``case`` is written ``drain/one``."""
        return [
            entry.values[key]
            for entry in self.entries
            if f"{entry.question}/{entry.case}" == case
            and entry.system == system
            and key in entry.values
        ]

    def summary(self, case: str, system: str, key: str) -> Summary | None:
        """Median and range; None if it was not measured, or not reached in a round."""
        found = self.values(case, system, key)
        known = [value for value in found if value is not None]
        return Summary.of(known) if known and len(known) == len(found) else None

    def median(self, case: str, system: str, key: str) -> float | None:
        """The median alone."""
        summary = self.summary(case, system, key)
        return None if summary is None else summary.median

    def ratio(
        self, one: tuple[str, str, str], other: tuple[str, str, str]
    ) -> float | None:
        """The ratio of two medians."""
        above, below = self.median(*one), self.median(*other)
        return above / below if above is not None and below else None

    def write(self, path: Path) -> None:
        """As JSON, an entry a line."""
        head: dict[str, Any] = asdict(self)
        entries = head.pop("entries")
        lines = ",\n".join(f"  {json.dumps(entry)}" for entry in entries)
        text = json.dumps(head, indent=1).removesuffix("\n}")
        path.write_text(f'{text},\n "entries": [\n{lines}\n ]\n}}\n')

    @classmethod
    def read(cls, path: Path) -> Results:
        """What ``write`` wrote. Raises OSError, ValueError."""
        content = json.loads(path.read_text())
        entries = [Entry(**entry) for entry in content.pop("entries")]
        return cls(**content, entries=entries)
