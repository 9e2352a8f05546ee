"""How large the package is, room by room, and which files a job's path crosses."""

from __future__ import annotations

import ast
import re
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from types import FrameType
from typing import Any, NamedTuple

from tests.architecture.source import PACKAGE, ROOT, lines, modules

# What an enqueue and a worker are made of; "" is the root.
ENGINE = (
    "",
    "conf",
    "domain",
    "enqueueing",
    "execution",
    "host",
    "models",
    "processes",
    "store",
    "text",
    "workers",
)


PAGE = ROOT / "docs" / "explanation" / "architecture.md"
TOLERANCE = 1.1  # a figure that has fallen further is lowered on the page


class Size(NamedTuple):
    """Of one room, or of several."""

    files: int
    lines: int


def rooms() -> dict[str, Size]:
    """The size of each room; "" is the root."""
    files: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for module in modules():
        room, slash, _ = module.path.partition("/")
        name = room if slash else ""
        files[name] += 1
        lines[name] += len(module.text.splitlines())
    return {name: Size(files[name], lines[name]) for name in sorted(files)}


def engine() -> Size:
    """The size of what an enqueue and a worker are made of."""
    sizes = [size for name, size in rooms().items() if name in ENGINE]
    return Size(sum(s.files for s in sizes), sum(s.lines for s in sizes))


def part(name: str) -> Size:
    """The size of the package, or of its core, its admin or its features."""
    sizes = rooms()
    of = {
        "package": list(sizes),
        "core": [room for room in sizes if room not in ("admin", "contrib")],
        "admin": ["admin"],
        "features": ["contrib"],
    }[name]
    chosen = [sizes[room] for room in of]
    return Size(sum(one.files for one in chosen), sum(one.lines for one in chosen))


def root_modules() -> list[str]:
    """The modules at the root of the package."""
    return [m.path for m in modules() if "/" not in m.path and m.path != "__init__.py"]


def worth_a_look() -> dict[str, int]:
    """Classes of more than 200 lines and functions of more than 40, with their lines:
    guidance for a review, not a limit."""
    sizes: dict[str, int] = {}
    for module in modules():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef) and lines(node) > 200:
                sizes[f"{module.path} {node.name}"] = lines(node)
        for function in module.functions:
            if lines(function) > 40:
                sizes[f"{module.path} {function.name}"] = lines(function)
    return sizes


def shared_names() -> dict[str, list[str]]:
    """File names that several files of the engine have, and which files."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in modules():
        path = PurePath(module.path)
        room = path.parts[0] if len(path.parts) > 1 else ""
        if room in ENGINE and path.name != "__init__.py":
            found[path.name].append(module.path)
    return {name: paths for name, paths in found.items() if len(paths) > 1}


@contextmanager
def crossed() -> Iterator[set[str]]:
    """Collect the files of the package that are called, in this thread and new ones."""
    found: set[str] = set()
    package = f"{PACKAGE}/"

    def note(frame: FrameType, event: str, arg: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(package):
            found.add(name.removeprefix(package))

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def lines_of(paths: set[str]) -> int:
    """How many lines these files have together."""
    return sum(len(m.text.splitlines()) for m in modules() if m.path in paths)


def limits() -> dict[str, int]:
    """The figures on the architecture page, which may only fall."""
    rows = re.findall(r"^\| ([^|]+?) \| ([\d,]+) \| [\d,]+ \|$", PAGE.read_text(), re.M)
    return {name: int(number.replace(",", "")) for name, number in rows}


def check_figures(**figures: int) -> None:
    """Print figures, and compare them with those on the page."""
    page = limits()
    wrong = {}
    for name, number in figures.items():
        name = name.replace("_", " ")
        print(f"{name}: {number:,} (at most {page[name]:,})")
        if not number <= page[name] <= max(number * TOLERANCE, number + 1):
            wrong[name] = number
    assert wrong == {}, f"the figures of {PAGE.name} may only fall, and say what is"
