"""The measurement of the admin on many jobs: a tiny run, and what is said of one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.admin_review.journeys import Export, Search
from benchmarks.admin_review.measure import Measured, percentile_95
from benchmarks.admin_review.page import RESULTS, Review, report, section
from tests.support.commands import ROOT

SEARCH = Search(
    name="key, with an index", clicks=1, requests=1, found=True, seconds=0.1, work=0.05
)


def measured(name: str, *milliseconds: float, **more: object) -> Measured:
    page = Measured(title="Archive", name=name, limit=200, status=200, queries=7)
    page.times = [2 * one for one in milliseconds]
    page.work = list(milliseconds)
    for key, value in more.items():
        setattr(page, key, value)
    return page


def review() -> Review:
    return Review(
        date="2026-11-23",
        machine={"cores": "2"},
        versions={"Django": "5.2"},
        archived=5_000_000,
        queued=100_000,
        rounds=2,
        load=[0.1, 0.2],
        pages=[measured("all", 50, 60), measured("failed", 90, 100)],
        drafts=[measured("made", 300, 300, title="Bulk draft", queries=0)],
        searches=[SEARCH],
        exports=[
            Export(
                name="CSV", rows=100, seconds=2.0, work=1.0, megabytes=3.5, grown_mb=1.5
            )
        ],
    )


def test_a_run_reads_as_it_was_and_pages_of_a_row_show_their_range(
    tmp_path: Path,
) -> None:
    path = tmp_path / "review.json"
    assert section(path) == "Not run yet."
    review().write(path)
    assert Review.read(path) == review()
    text = section(path)
    assert "| Archive: all, failed | 110–190 | 119–199 | 55–95 | 60–100 | 7 |" in text
    assert "| Bulk draft: made | 600 | 600 | 300 | 300 | – |" in text
    assert "at the 95th percentile: bulk draft, made." in text
    assert "| key, with an index | 1 | 1 | 0.100 | 0.0500 |" in text
    assert "| CSV | 100 | 50 | 1 | 3.50 | 1.50 |" in text


def test_what_misses_its_aim_is_marked() -> None:
    assert measured("all", 100, 150).verdict == ""
    assert measured("all", 100, 350).verdict == "over 200"
    assert measured("all", 1, status=500).verdict == "HTTP 500"
    assert SEARCH.verdict == ""
    assert replace(SEARCH, clicks=4).verdict == "over 3 clicks or 5 s"
    assert replace(SEARCH, work=6.0).verdict == "over 3 clicks or 5 s"
    assert replace(SEARCH, found=False).verdict == "not found"
    assert "over 200" in report(review())


def test_the_page_has_the_last_run() -> None:
    page = (ROOT / "docs" / "explanation" / "benchmarks.md").read_text()
    assert section(RESULTS) in page
    assert percentile_95([7.0]) == 7.0
    assert percentile_95(list(range(101))) == 95


@pytest.mark.slow("runs a benchmark")
@pytest.mark.processes
def test_a_tiny_run_finds_every_page() -> None:
    command = [sys.executable, "-m", "benchmarks.admin_review", "--rounds", "1"]
    done = subprocess.run(
        [*command, "--archived", "30000", "--queued", "600"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "HTTP" not in done.stdout
    assert "not found" not in done.stdout
    assert "Export: CSV" in done.stdout
