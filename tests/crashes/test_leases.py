"""Processes that contend for a lease are killed and paused; no write of one comes after
a write of a later holder."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from django.db import connection

from django_jobqueue import LeaseLost
from django_jobqueue.contrib.leases import lease, taking
from django_jobqueue.processes.forking import settle_in
from tests.support.commands import start_code
from tests.support.selection import some_slow

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


CONTENDERS = 5
TTL = 0.5  # seconds
LEAST = 2  # kills
PAUSES = (0.02, 1.0)  # seconds that one is stopped: some for longer than the lease


def contend() -> None:
    """Take the lease again and again, and write a few times with each fence, some time
    after the transaction began: whoever is paused in between writes when another one
    may have the lease."""
    random.seed(os.getpid())
    while True:
        try:
            with lease("chaos", ttl=TTL) as held:
                for _ in range(random.randint(1, 8)):
                    with held.atomic(), connection.cursor() as cursor:
                        time.sleep(random.uniform(0, 0.02))
                        cursor.execute(
                            "INSERT INTO lease_writes (fence, writer) VALUES (%s, %s)",
                            [held.fence, os.getpid()],
                        )
        except LeaseLost:
            continue


def fork() -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            settle_in(parent)
            contend()
        finally:
            os._exit(1)
    return pid


class Contenders:
    def __init__(self) -> None:
        self.pids = [fork() for _ in range(CONTENDERS)]
        self.paused: dict[int, float] = {}  # until when, by process
        self.kills = self.pauses = 0

    def harass(self) -> None:
        """Let paused ones go on that were paused long enough; kill or pause one."""
        now = time.monotonic()
        for pid in [pid for pid, until in self.paused.items() if until < now]:
            os.kill(pid, signal.SIGCONT)
            del self.paused[pid]
        victim = random.choice(self.pids)
        if self.kills < self.pauses / 2:
            self._kill(victim)
            self.pids[self.pids.index(victim)] = fork()
            self.kills += 1
        elif len(self.paused) < CONTENDERS - 2 and victim not in self.paused:
            os.kill(victim, signal.SIGSTOP)
            self.paused[victim] = now + random.uniform(*PAUSES)
            self.pauses += 1

    def end(self) -> None:
        for pid in self.pids:
            self._kill(pid)

    def _kill(self, pid: int) -> None:
        self.paused.pop(pid, None)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def main(seconds: float) -> None:
    """Let them contend; print the numbers of kills and of pauses."""
    taking.SHORTEST = TTL  # type: ignore[misc]
    contenders = Contenders()
    deadline = time.monotonic() + seconds
    while (
        time.monotonic() < deadline
        or contenders.kills < LEAST
        or len({fence for fence, _ in written()}) < LEAST
    ):
        connection.close()  # no fork is to have it
        contenders.harass()
        time.sleep(random.uniform(0.02, 0.15))
    contenders.end()
    print(contenders.kills, contenders.pauses)


@pytest.fixture
def _table() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE lease_writes"
            " (id bigserial PRIMARY KEY, fence bigint NOT NULL, writer int NOT NULL)"
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE lease_writes")


def written() -> list[tuple[int, int]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT fence, writer FROM lease_writes ORDER BY id")
        return cursor.fetchall()


@pytest.mark.usefixtures("_table")
@pytest.mark.parametrize("seconds", some_slow([1, 60], always=[1]))
def test_no_write_comes_after_one_with_a_greater_fence(
    seconds: int, tmp_path: Path
) -> None:
    output = tmp_path / "contenders.log"
    code = f"from tests.crashes.test_leases import main; main({seconds})"
    assert start_code(code, output).wait(seconds + 60) == 0, output.read_text()
    kills, pauses = map(int, output.read_text().splitlines()[-1].split())
    writes = written()
    fences = [fence for fence, _writer in writes]
    assert kills >= LEAST
    assert pauses
    assert len(set(fences)) > 1
    backwards = [pair for pair in pairwise(fences) if pair[1] < pair[0]]
    assert backwards == []
    assert len(set(writes)) == len(set(fences)), "two writers had the same fence"
