"""Gets ``tests/tasks`` of Django, and puts our backend where it names others."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

import django

CACHE: Final = Path(__file__).resolve().parents[3] / ".cache" / "conformance"
HERE: Final = __package__
OF_DJANGO: Final = django.VERSION >= (6, 0)
# The backport's own distribution has no tests; those of Django 6.0 were made of them.
WANTED: Final = django.get_version() if OF_DJANGO else "6.0"

CHANGES: Final = (
    (r"django\.tasks\.backends\.dummy\.DummyBackend", f"{HERE}.stand_ins.DummyBackend"),
    (
        r"django\.tasks\.backends\.immediate\.ImmediateBackend",
        f"{HERE}.stand_ins.ImmediateBackend",
    ),
    (r"from django\.tasks\.backends\.(dummy|immediate)", f"from {HERE}.stand_ins"),
    (r"from django\.tasks\.backends\.base", f"from {HERE}.stand_ins"),
    (r"from django\.tasks\.exceptions", f"from {HERE}.stand_ins"),
    (
        r"^from django\.tasks import Task, ",
        f"from {HERE}.stand_ins import JobTask as Task\nfrom django.tasks import ",
    ),
    (r"SimpleTestCase|TransactionTestCase", "DatabaseTestCase"),
    (
        r"^from django\.test import (.*)",
        f"from {HERE}.stand_ins import DatabaseTestCase\n"
        "from django.test import override_settings",
    ),
)
FOR_THE_BACKPORT: Final = (
    (r"django\.tasks\b", "django_tasks"),
    (r"support async Tasks", "support async tasks"),
)


class Unobtainable(Exception):
    """The distribution is not at hand."""


def tests() -> Path:
    """The folder that has the package ``tasks``. Raises Unobtainable."""
    folder = CACHE / f"django-{WANTED}"
    found = sorted(CACHE.glob(f"[dD]jango-{WANTED}*.tar.gz"))
    if not found:
        _download()
        found = sorted(CACHE.glob(f"[dD]jango-{WANTED}*.tar.gz"))
    _extract(found[-1], folder / "tasks")
    return folder


def adapted(text: str) -> str:
    """The source of a test, with our backend in it."""
    for pattern, instead in CHANGES:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    if not OF_DJANGO:
        for pattern, instead in FOR_THE_BACKPORT:
            text = re.sub(pattern, instead, text)
    return text


def _download() -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    wanted = f"Django=={WANTED}" if OF_DJANGO else "Django>=6.0,<6.1"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
            *("--no-binary", ":all:", "--dest", str(CACHE), wanted),
            *(() if OF_DJANGO else ("--ignore-requires-python",)),
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:]
        raise Unobtainable(f"pip cannot get Django's tests: {''.join(reason)}")


def _extract(archive: Path, package: Path) -> None:
    package.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            parts = Path(member.name).parts
            if parts[1:3] == ("tests", "tasks") and member.name.endswith(".py"):
                file = tar.extractfile(member)
                assert file is not None
                (package / parts[3]).write_text(adapted(file.read().decode()))
