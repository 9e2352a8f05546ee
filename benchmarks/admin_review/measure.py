"""Asks for pages through Django's test client, and notes what each took: everything but
the network."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.admin_review.pages import Cache, Page


@dataclass
class Took:
    """Milliseconds of some requests: on the clock, and of processors.

    On a machine that does nothing else the two are alike. On a shared one, the second
    is what can be compared: the time that this process and its server process kept
    processors busy.
    """

    times: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Add what happens inside."""
        began, worked = time.perf_counter(), _worked()
        yield
        self.times.append(round((time.perf_counter() - began) * 1_000, 2))
        self.work.append(round((_worked() - worked) * 1_000, 2))


@dataclass
class Measured(Took):
    """A page, and what it took."""

    title: str = ""
    name: str = ""
    limit: int = 0
    status: int = 0
    queries: int = 0
    kilobytes: float = 0.0

    @property
    def p50(self) -> float:
        """Half of the requests took no longer."""
        return statistics.median(self.times)

    @property
    def p95(self) -> float:
        """95 of 100 requests took no longer."""
        return percentile_95(self.times)

    @property
    def work_p50(self) -> float:
        """The same of the time of processors."""
        return statistics.median(self.work)

    @property
    def work_p95(self) -> float:
        """The same of the time of processors."""
        return percentile_95(self.work)

    @property
    def verdict(self) -> str:
        """Empty if it kept its limit."""
        if self.status != 200:
            return f"HTTP {self.status}"
        return "" if self.work_p95 <= self.limit else f"over {self.limit}"


def percentile_95(values: Sequence[float]) -> float:
    """95 of 100 values are no greater."""
    if len(values) == 1:
        return values[0]
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def browser() -> Any:
    """A superuser's."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    users = get_user_model().objects
    user = users.filter(username="anna").first()
    client = Client(raise_request_exception=False)
    client.force_login(user or users.create_superuser("anna", "", "x"))
    return client


def measure(
    client: Any, chosen: Sequence[Page], rounds: int, say: Callable[[str], None]
) -> list[Measured]:
    """Ask for every page in turn, some rounds; the first one is not counted."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    found = []
    for page in chosen:
        _prepare(client, page)
        with CaptureQueriesContext(connection) as captured:
            response = client.get(page.address)
        found.append(
            Measured(
                title=page.title,
                name=page.name,
                limit=page.limit,
                status=response.status_code,
                queries=len(captured),
                kilobytes=round(len(response.content) / 1_000, 1),
            )
        )
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        for page, one in zip(chosen, found, strict=True):
            _prepare(client, page)
            with one.noted():
                client.get(page.address)
    return found


def _prepare(client: Any, page: Page) -> None:
    from django_jobqueue.stats import overview

    if page.cache is not Cache.AS_IT_IS:
        overview.forget()
    if page.cache is Cache.FULL:
        client.get(page.address)


def _worked() -> float:
    """Seconds that this process, its server process, and those that ended after they
    had helped it kept processors busy."""
    from django.db import connection

    connection.ensure_connection()
    server = psutil.Process(connection.connection.info.backend_pid)
    own = int(Path(f"/proc/{server.pid}/schedstat").read_text().split()[0]) / 1e9
    parent = server.parent()
    helpers = sum(parent.cpu_times()[2:4]) if parent is not None else 0.0
    return time.process_time() + own + helpers
