"""How long the admin's pages take on a large archive.

Fills a database of its own on the server of the test suite, then asks for each page
through Django's test client: sessions, permissions, SQL and templates, everything but
the network.

    python -m benchmarks.admin_lists --archived 5000000 --queued 100000
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.admin_pages import Page, pages
from benchmarks.admin_rows import fill

DATABASE = "benchmark_admin_lists"


@dataclass
class Measured:
    """What a page took."""

    page: Page
    status: int
    queries: int
    sql: float  # milliseconds
    times: list[float] = field(default_factory=list)  # milliseconds

    @property
    def p50(self) -> float:
        """Half of the requests took no longer."""
        return statistics.median(self.times)

    @property
    def p95(self) -> float:
        """95 of 100 requests took no longer."""
        return statistics.quantiles(self.times, n=20, method="inclusive")[-1]

    @property
    def verdict(self) -> str:
        """Whether it kept its limit."""
        if self.status != 200:
            return f"HTTP {self.status}"
        return "" if self.p95 <= self.page.limit else f"over {self.page.limit}"


def main() -> None:
    """Fill, measure, print, and drop the database again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--archived", type=int, default=1_000_000)
    parser.add_argument("--queued", type=int, default=100_000)
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

    connection.settings_dict["TEST"]["NAME"] = DATABASE
    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(
        verbosity=0, autoclobber=not options.kept, keepdb=options.kept
    )
    try:
        if not options.kept:
            fill(options.archived, options.queued)
        chosen = [page for page in pages() if options.only in page.name]
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

    users = get_user_model().objects
    user = users.filter(username="anna").first()
    client = Client(raise_request_exception=False)
    client.force_login(user or users.create_superuser("anna", "", "x"))
    found = []
    for page in chosen:
        with CaptureQueriesContext(connection) as captured:
            response = client.get(page.address)
        spent = sum(float(query["time"]) for query in captured.captured_queries)
        found.append(Measured(page, response.status_code, len(captured), spent * 1_000))
    for _ in range(rounds):
        for one in found:
            began = time.perf_counter()
            client.get(one.page.address)
            one.times.append((time.perf_counter() - began) * 1_000)
    return found


def report(found: Sequence[Measured], options: argparse.Namespace) -> None:
    """Print a table."""
    print(f"{options.archived:,} archived, {options.queued:,} queued; milliseconds")
    print(f"{'page':34} {'p50':>7} {'p95':>7} {'queries':>8} {'SQL':>7}")
    for one in found:
        print(
            f"{one.page.name:34} {one.p50:7.0f} {one.p95:7.0f} {one.queries:8} "
            f"{one.sql:7.0f} {one.verdict}".rstrip()
        )


if __name__ == "__main__":
    main()
