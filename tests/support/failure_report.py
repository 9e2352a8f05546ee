"""What a failing test prints besides its traceback: the logs of its workers, the rows
that it left, and how to run it again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from django.db import DatabaseError, connection

TABLES: Final = ("queuedjob", "archivedjob", "failure", "worker", "host")
MOST: Final = 10  # rows of each table
WIDEST: Final = 400  # characters of a row, of which most columns are empty
LONGEST: Final = 8_000  # characters of a log, from its end


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Iterator[None]:
    """Called after each phase; what a teardown would take away is read before it."""
    report: pytest.TestReport = yield
    if report.failed and report.when == "call":
        report.sections += [*_logs(item), *_rows(item), ("Run it again", _again(item))]
    return report


def _logs(item: pytest.Item) -> Iterator[tuple[str, str]]:
    for folder in filter(None, [getattr(item, "funcargs", {}).get("tmp_path")]):
        for log in sorted(folder.glob("*.log")):
            yield f"Log {log.name}", log.read_text(errors="replace")[-LONGEST:]


def _rows(item: pytest.Item) -> Iterator[tuple[str, str]]:
    asked = {"db", "transactional_db"} & set(getattr(item, "fixturenames", ()))
    if not asked and item.get_closest_marker("django_db") is None:
        return
    for table in TABLES:
        try:
            with connection.cursor() as cursor:
                cursor.execute(
                    f"SELECT left(jsonb_strip_nulls(to_jsonb(row) - 'data')::text,"
                    f" {WIDEST}) FROM jobqueue_{table} AS row LIMIT {MOST}"
                )
                rows = [row for (row,) in cursor.fetchall()]
        except DatabaseError:  # the test left a transaction that failed
            return
        if rows:
            yield f"Rows of {table}, {MOST} at most", "\n".join(rows)


def _again(item: pytest.Item) -> str:
    seed = item.config.getoption("randomly_seed", 1)
    return f"make test PYTEST_ARGS='{item.nodeid} --randomly-seed={seed}'"
