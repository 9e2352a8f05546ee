"""Asks hosts some at a time, and waits until each has done it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Final

from django.core.management.base import CommandError

from django_jobqueue.conf import conf
from django_jobqueue.domain.states import HostState
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.models import Host
from django_jobqueue.text.numbers import span

POLL: Final = 0.2  # seconds
LEAVING: Final = (HostState.STOPPING, HostState.RESTARTING)


def batch_size(text: str | None, count: int) -> int:
    """How many of so many hosts are asked at once; a share is rounded up. Raises
    CommandError."""
    if text is None:
        return max(1, count)
    number, percent = text.removesuffix("%"), text.endswith("%")
    if not number.isdecimal() or int(number) < 1 or (percent and int(number) > 100):
        raise CommandError(
            f"--rolling: {text!r} is no share. Write a number of hosts, or 25%."
        )
    return math.ceil(count * int(number) / 100) if percent else int(number)


class Rolling:
    """Goes through them; the first one that fails ends it, so that the others go on
    as they are."""

    def __init__(self, console: Console, size: int, wait: float) -> None:
        self._console = console
        self._size = max(1, size)
        self._wait = wait

    def go(
        self,
        hosts: Sequence[Host],
        ask: Callable[[list[Host]], None],
        *,
        restarts: bool = False,
    ) -> None:
        """Ask them, and wait. Raises CommandError."""
        for start in range(0, len(hosts), self._size):
            some = list(hosts[start : start + self._size])
            ask(some)
            left = len(hosts) - start - len(some)
            self._wait_for(some, left, restarts=restarts)

    def _wait_for(self, hosts: Sequence[Host], left: int, *, restarts: bool) -> None:
        waiting = {host.pk: host.name for host in hosts}
        others = f" {left} more were not asked." if left else ""
        deadline = time.monotonic() + self._wait
        while True:
            rows = Host.objects.using(conf.database).in_bulk(list(waiting))
            for id, name in list(waiting.items()):
                row = rows.get(id)
                if row is None or is_done(row):
                    del waiting[id]
                    self._check(row, name, others, restarts=restarts)
            if not waiting:
                return
            if time.monotonic() > deadline:
                names = ", ".join(waiting.values())
                raise CommandError(
                    f"Not done within {span(self._wait)}: {names}.{others}"
                )
            time.sleep(POLL)

    def _check(
        self, row: Host | None, name: str, others: str, *, restarts: bool
    ) -> None:
        """Raises CommandError if it has not done what it was asked."""
        if row is not None and row.error and row.pending:
            raise CommandError(f"{name}: {row.error}{others}")
        if restarts and (row is None or row.stopped_at is not None):
            raise CommandError(f"{name} has ended.{others}")
        self._console.info(f"{name}: done.")


def is_done(host: Host) -> bool:
    """Whether it has dealt with the last request, or has ended."""
    if host.stopped_at is not None:
        return True
    is_dealt_with = host.applied.get("number") == host.desired.get("number")
    return is_dealt_with and host.state not in LEAVING
