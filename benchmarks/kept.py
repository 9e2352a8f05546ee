"""Figures of a benchmark of its own, kept for the page of the documentation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.environment import ROOT


def place_of(name: str) -> Path:
    """The file of this benchmark."""
    return ROOT / "benchmarks" / "results" / f"{name}.json"


def keep(path: Path, content: Mapping[str, Any]) -> None:
    """Write what a run with ``--page`` came to."""
    path.write_text(json.dumps(content, indent=1) + "\n")


def section_of(path: Path, in_words: Callable[[Mapping[str, Any]], str]) -> str:
    """What the page says of the last such run."""
    if not path.exists():
        return "Not run yet."
    return in_words(json.loads(path.read_text()))
