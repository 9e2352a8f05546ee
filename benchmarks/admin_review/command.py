"""The command line of the measurement of the admin on millions of jobs."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.admin_review.page import RESULTS, Review, report
from benchmarks.admin_review.place import database

DRAFTS = 5  # of each sort


def main(arguments: list[str]) -> int:
    """Do what the command line asks for; returns the exit code."""
    options = _options(arguments)
    review = Review.read(options.read) if options.read else _run(options)
    print(report(review))
    for path in (options.json, RESULTS if options.page else None):
        if path is not None:
            review.write(path)
    if options.page:
        _write_page()
    return 0


def _write_page() -> None:
    """The page of the documentation, with the other results that it is made of."""
    from benchmarks import command
    from benchmarks.page import page
    from benchmarks.results import Results

    command.PAGE.write_text(page(Results.read(command.RESULTS)))


def _run(options: argparse.Namespace) -> Review:
    with database(keep=options.keep) as was_kept:
        from benchmarks.admin_review.rows import fill

        if not was_kept:
            _say("filling")
            fill(options.archived, options.queued)
        return _measured(options)


def _measured(options: argparse.Namespace) -> Review:
    from benchmarks.admin_review.journeys import drafts, exports, searches
    from benchmarks.admin_review.measure import browser, measure
    from benchmarks.admin_review.pages import pages

    load, began = os.getloadavg()[0], time.monotonic()
    review = Review(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        machine=_machine(),
        versions=_versions(),
        archived=options.archived,
        queued=options.queued,
        rounds=options.rounds,
        load=[load],
    )
    client = browser()
    chosen = [p for p in pages() if options.only in f"{p.title}: {p.name}"]
    if not options.only:
        review.exports = exports(client, _say)  # first, while this process is small
    review.pages = measure(client, chosen, options.rounds, _say)
    if not options.only:
        review.drafts = drafts(client, min(DRAFTS, options.rounds))
        review.searches = searches(client, _say)
    review.load = [round(load, 1), round(os.getloadavg()[0], 1)]
    review.seconds = round(time.monotonic() - began, 1)
    return review


def _machine() -> dict[str, str]:
    return {
        "cores": str(len(os.sched_getaffinity(0))),
        "kernel": f"{platform.system()} {platform.release()}",
    }


def _versions() -> dict[str, str]:
    import django
    import psycopg
    from django.db import connection

    import django_jobqueue

    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        (server,) = cursor.fetchone()
    return {
        "django_jobqueue": django_jobqueue.__version__,
        "Python": platform.python_version(),
        "Django": django.__version__,
        "psycopg": psycopg.__version__,
        "PostgreSQL": server,
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.admin_review",
        description="Measure the pages of the admin, the search for an old job and the "
        "exports on millions of jobs.",
    )
    parser.add_argument("--archived", type=int, default=5_000_000, help="(5,000,000)")
    parser.add_argument("--queued", type=int, default=100_000, help="(100,000)")
    parser.add_argument("--rounds", type=int, default=20, help="(20)")
    parser.add_argument("--only", default="", help="pages whose names have this")
    parser.add_argument(
        "--keep", action="store_true", help="keep the rows, and use those that are kept"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results")
    parser.add_argument(
        "--read", type=Path, metavar="FILE", help="run nothing; show these results"
    )
    parser.add_argument(
        "--page", action="store_true", help="write them where the docs are made from"
    )
    options = parser.parse_args(arguments)
    if options.page and options.only:
        parser.error("--page needs a whole run: without --only")
    return options
