"""Which tests run: ``make quick``, ``make test``, ``make test-all``, and a slice of it.

A test that ``make test`` leaves out has the mark ``slow`` with a reason. None is ever
left out for want of time, and in CI (``JOBQUEUE_SKIP_NOTHING``) a test that is skipped
fails the run unless its reason begins with "needs": a program of others, or a version.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from datetime import date
from typing import Any
from zlib import crc32

import pytest

# Tests of these folders follow each other, and share a browser or parsed sources, which
# take seconds to make.
TOGETHER = ("tests/architecture/", "tests/browser/")
# Those of these open pages of the admin.
PAGES = "tests/admin/"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--slice 3/7`` runs the third of seven parts of what is chosen, ``--slice
    today/7`` that of today."""
    parser.addoption("--slice", metavar="NUMBER/PARTS", help="one part of the tests")


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Refuse marks without a reason, put tests together that share something, and leave
    out the other slices."""
    for item in items:
        for mark in item.iter_markers("slow"):
            if not mark.args or not isinstance(mark.args[0], str):
                raise pytest.UsageError(f"{item.nodeid}: slow needs a reason")
        if cost := _cost(item):
            item.add_marker(cost)
    for folder in TOGETHER:
        ours = [item for item in items if item.nodeid.startswith(folder)]
        others = [item for item in items if not item.nodeid.startswith(folder)]
        first = items.index(ours[0]) if ours else 0
        items[:] = [*others[:first], *ours, *others[first:]]
    wanted = config.getoption("--slice")
    if wanted is None:
        return
    match = re.fullmatch(r"(\d+|today)/([1-9]\d*)", wanted)
    if match is None:
        raise pytest.UsageError(f"--slice is like 3/7 or today/7, not {wanted!r}")
    parts = int(match[2])
    number = date.today().toordinal() if match[1] == "today" else int(match[1])
    chosen = [i for i in items if crc32(i.nodeid.encode()) % parts == number % parts]
    config.hook.pytest_deselected(items=[i for i in items if i not in set(chosen)])
    items[:] = chosen


def _cost(item: pytest.Item) -> str | None:
    """What makes it dear, if it is; ``make quick`` leaves these out."""
    fixtures = getattr(item, "fixturenames", ())
    database = item.get_closest_marker("django_db")
    if "transactional_db" in fixtures or (
        database is not None and database.kwargs.get("transaction")
    ):
        return "commits"
    if item.nodeid.startswith(PAGES) and (database is not None or "db" in fixtures):
        return "pages"
    return None


class SkipsNothing:
    """Fails the run for tests that were skipped for no good reason."""

    def __init__(self) -> None:
        self._skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what was skipped. An expected failure is reported as skipped, too."""
        if report.skipped and not hasattr(report, "wasxfail"):
            assert isinstance(report.longrepr, tuple)
            reason = str(report.longrepr[2]).removeprefix("Skipped: ")
            if not reason.startswith("needs "):
                self._skipped.append(f"{report.nodeid}: {reason}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """The run fails though no test did."""
        if self._skipped:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say which ones."""
        for line in self._skipped:
            terminalreporter.write_line(f"Skipped, which fails this run: {line}")


def pytest_configure(config: pytest.Config) -> None:
    """In CI only, and in the process that has all reports."""
    if os.environ.get("JOBQUEUE_SKIP_NOTHING") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipsNothing())


def some_slow(
    values: Iterable[Any], always: Collection[Any], reason: str = "further values"
) -> list[Any]:
    """Values, or tuples of them, of which all but these are ``slow``."""
    return [
        pytest.param(
            *(v if isinstance(v, tuple) else (v,)),
            marks=() if v in always else pytest.mark.slow(reason),
        )
        for v in values
    ]
