"""Processes that want the same lease and write what it protects, while they are killed
and paused at random. ``main(SECONDS)`` prints how often.

Each write carries the fence, and comes some time after its transaction began: whoever
is paused in between writes when another one may have the lease.
"""

from __future__ import annotations

import os
import random
import signal
import time

CONTENDERS = 5
TTL = 0.5  # seconds
PAUSES = (0.02, 1.5)  # seconds that one is stopped: some for longer than the lease


def contend() -> None:
    """Take the lease again and again, and write a few times with each fence."""
    from django.db import connection

    from django_jobqueue import LeaseLost, lease

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
    """Start a contender."""
    from django_jobqueue.processes.forking import settle_in

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
    """The processes, and what is done to them."""

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
        if random.random() < 0.3:
            self._kill(victim)
            self.pids[self.pids.index(victim)] = fork()
            self.kills += 1
        elif len(self.paused) < CONTENDERS - 2 and victim not in self.paused:
            os.kill(victim, signal.SIGSTOP)
            self.paused[victim] = now + random.uniform(*PAUSES)
            self.pauses += 1

    def end(self) -> None:
        """Kill all of them."""
        for pid in self.pids:
            self._kill(pid)

    def _kill(self, pid: int) -> None:
        self.paused.pop(pid, None)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def main(seconds: float) -> None:
    """Let them contend; print the numbers of kills and of pauses."""
    from django_jobqueue.domain import lease_names

    lease_names.SHORTEST = TTL  # type: ignore[misc]
    contenders = Contenders()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        contenders.harass()
        time.sleep(random.uniform(0.05, 0.3))
    contenders.end()
    print(contenders.kills, contenders.pauses)
