"""How long the admin's pages take on a large archive, and how large they are.

Fills a database of its own on the server of the test suite, then asks for each page
through Django's test client: sessions, permissions, SQL and templates, everything but
the network. A refresh asks as the script of an open page does.

    python -m benchmarks.admin_lists --archived 5000000 --queued 100000
    python -m benchmarks.admin_lists --archived 300000 --queued 20000 --types 3000
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.admin_pages import Page, pages
from benchmarks.admin_rows import USUAL_TYPES, fill

DATABASE = "benchmark_admin_lists"
REGION = re.compile(r'data-jq-region="([^"]+)" data-jq-version="([^"]+)"')


@dataclass
class Measured:
    """What a page took."""

    page: Page
    status: int = 0
    queries: int = 0
    size: float = 0.0  # kB
    known: dict[str, str] = field(default_factory=dict)  # versions of regions
    times: list[float] = field(default_factory=list)  # milliseconds, on the clock
    work: list[float] = field(default_factory=list)  # milliseconds of a processor

    @property
    def p50(self) -> float:
        """Half of the requests took no longer."""
        return statistics.median(self.times)

    @property
    def p95(self) -> float:
        """95 of 100 requests took no longer."""
        return _p95(self.times)

    @property
    def work_p95(self) -> float:
        """95 of 100 requests kept processors no longer busy, ours and the server's.

        On a machine that does nothing else this is what the clock shows; on one that
        is shared it is what can still be compared.
        """
        return _p95(self.work)

    @property
    def verdict(self) -> str:
        """Whether it kept its limit."""
        if self.status not in (200, 302):
            return f"HTTP {self.status}"
        over = []
        if self.work_p95 > self.page.limit:
            over.append(f"over {self.page.limit} ms")
        if self.size > self.page.largest:
            over.append(f"over {self.page.largest} kB")
        return ", ".join(over)


def main() -> None:
    """Fill, measure, print, and drop the database again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--archived", type=int, default=1_000_000)
    parser.add_argument("--queued", type=int, default=100_000)
    parser.add_argument("--types", type=int, default=USUAL_TYPES, help="job types")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", default="", help="pages whose names have this")
    parser.add_argument("--keep", action="store_true", help="keep the database")
    parser.add_argument("--kept", action="store_true", help="use the one that was kept")
    options = parser.parse_args()

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django
    from django.conf import settings

    django.setup()
    settings.ALLOWED_HOSTS = ["testserver"]
    from django.db import connection

    # Without a copy of all rows in memory.
    connection.settings_dict["TEST"].update(NAME=DATABASE, SERIALIZE=False)
    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(
        verbosity=0, autoclobber=not options.kept, keepdb=options.kept
    )
    try:
        if not options.kept:
            fill(options.archived, options.queued, options.types)
        asked = pages(options.types)
        chosen = [page for page in asked if options.only in page.name]
        report(measure(chosen, options.rounds), options)
    finally:
        keep = options.keep or options.kept
        connection.creation.destroy_test_db(name, verbosity=0, keepdb=keep)


def measure(chosen: Sequence[Page], rounds: int) -> list[Measured]:
    """Ask for every page in turn, some rounds."""
    from django.contrib.auth import get_user_model
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from django_jobqueue.stats import overview

    users = get_user_model().objects
    user = users.filter(username="anna").first()
    client = Client(raise_request_exception=False)
    client.force_login(user or users.create_superuser("anna", "", "x"))
    found = []
    for page in chosen:
        one = Measured(page)
        _send(client, one)  # an open page; what is cached for longer is there
        with CaptureQueriesContext(connection) as captured:
            response = _send(client, one)
        one.status, one.queries = response.status_code, len(captured)
        one.size = len(response.content) / 1_000
        found.append(one)
    for _ in range(rounds):
        for one in found:
            if one.page.is_uncached:
                overview.forget()
            began, worked = time.perf_counter(), _worked()
            _send(client, one)
            one.times.append((time.perf_counter() - began) * 1_000)
            one.work.append((_worked() - worked) * 1_000)
    return found


def _send(client: Any, one: Measured) -> Any:
    page = one.page
    if page.form:
        return client.post(page.address, page.form)
    if not page.is_refresh:
        return client.get(page.address)
    known = ",".join(f"{name}={version}" for name, version in one.known.items())
    response = client.get(page.address, headers={"Jobqueue-Regions": known or "-"})
    one.known.update(REGION.findall(response.content.decode()))
    return response


def _worked() -> float:
    """Seconds that this process and its server process kept processors busy."""
    from django.db import connection

    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    served = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    return time.process_time() + served / 1e9


def _p95(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=20, method="inclusive")[-1]


def report(found: Sequence[Measured], options: argparse.Namespace) -> None:
    """Print a table."""
    print(
        f"{options.archived:,} archived, {options.queued:,} queued, "
        f"{options.types:,} types; milliseconds, kB, and their limits"
    )
    print(
        f"{'page':40} {'p50':>7} {'p95':>7} {'work p50':>9} {'work p95':>9} "
        f"{'limit':>6} {'queries':>8} {'kB':>7} {'limit':>6}"
    )
    for one in found:
        print(
            f"{one.page.name:40} {one.p50:7.0f} {one.p95:7.0f} "
            f"{statistics.median(one.work):9.0f} {one.work_p95:9.0f} "
            f"{one.page.limit:6} {one.queries:8} {one.size:7.1f} "
            f"{one.page.largest:6} {one.verdict}".rstrip()
        )


if __name__ == "__main__":
    main()
