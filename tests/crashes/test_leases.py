"""Processes that contend for a lease are killed and paused; no write of one comes after
a write of a later holder."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from django.db import connection

from tests.support.commands import start_code
from tests.support.selection import some_slow

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def _table() -> Iterator[None]:
    """What the lease protects."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE lease_writes"
            " (id bigserial PRIMARY KEY, fence bigint NOT NULL, writer int NOT NULL)"
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE lease_writes")


def written() -> list[tuple[int, int]]:
    """Fence and writer of each write, in order."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT fence, writer FROM lease_writes ORDER BY id")
        return cursor.fetchall()


@pytest.mark.usefixtures("_table")
@pytest.mark.parametrize("seconds", some_slow([3, 60], always=[3]))
def test_no_write_comes_after_one_with_a_greater_fence(
    seconds: int, tmp_path: Path
) -> None:
    output = tmp_path / "contenders.log"
    code = f"from tests.crashes.lease_contenders import main; main({seconds})"
    assert start_code(code, output).wait(seconds + 60) == 0, output.read_text()
    kills, pauses = map(int, output.read_text().split())
    writes = written()
    fences = [fence for fence, _writer in writes]
    assert kills
    assert pauses
    assert len(set(fences)) > 3
    backwards = [pair for pair in pairwise(fences) if pair[1] < pair[0]]
    assert backwards == []
    assert len(set(writes)) == len(set(fences)), "two writers had the same fence"
