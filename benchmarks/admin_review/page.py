"""What the documentation says of the last run, and what the terminal does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final

from benchmarks.admin_review.journeys import Export, Search
from benchmarks.admin_review.measure import Measured
from benchmarks.environment import ROOT
from benchmarks.figures import number
from benchmarks.tables import line, prose

RESULTS: Final = ROOT / "benchmarks" / "results" / "admin_review.json"


@dataclass(kw_only=True)
class Review:
    """A run, and what it was made on."""

    date: str
    machine: Mapping[str, str]
    versions: Mapping[str, str]
    archived: int
    queued: int
    rounds: int
    load: Sequence[float]  # of the machine, before and after
    seconds: float = 0.0
    note: str = ""  # what a reader must know of this run
    pages: list[Measured] = field(default_factory=list)
    drafts: list[Measured] = field(default_factory=list)
    searches: list[Search] = field(default_factory=list)
    exports: list[Export] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Review:
        """What ``write`` wrote. Raises OSError, ValueError."""
        content = json.loads(path.read_text())
        for name, kind in (
            ("pages", Measured),
            ("drafts", Measured),
            ("searches", Search),
            ("exports", Export),
        ):
            content[name] = [kind(**one) for one in content[name]]
        return cls(**content)


def report(review: Review) -> str:
    """Every page, for the terminal."""
    lines = [
        f"{review.archived:,} archived, {review.queued:,} queued; milliseconds",
        f"{'page':54} {'p50':>6} {'p95':>6} {'CPU p50':>8} {'CPU p95':>8} {'SQL':>4} "
        f"{'kB':>6} {'limit':>6}",
    ]
    lines += [
        f"{f'{one.title}: {one.name}':54} {one.p50:6.0f} {one.p95:6.0f} "
        f"{one.work_p50:8.0f} {one.work_p95:8.0f} {one.queries:4} "
        f"{one.kilobytes:6.0f} {one.limit:6} {one.verdict}".rstrip()
        for one in (*review.pages, *review.drafts)
    ]
    lines += [
        f"Search: {one.name}: {one.clicks} clicks, {one.requests} requests, "
        f"{one.seconds:.2f} s, CPU {one.work:.2f} s {one.verdict}".rstrip()
        for one in review.searches
    ]
    lines += [
        f"Export: {one.name}: {one.rows:,} jobs, {one.rate:,.0f} jobs/s, CPU "
        f"{one.work:.1f} s, {one.megabytes:.1f} MB, memory +{one.grown_mb:.1f} MiB"
        for one in review.exports
    ]
    return "\n".join(lines)


def section(path: Path = RESULTS) -> str:
    """What the page says of the last run."""
    if not path.exists():
        return "Not run yet."
    review = Review.read(path)
    over = [f"{p.title.lower()}, {p.name}" for p in _all(review) if p.verdict]
    facts = "; ".join(f"{k}: {v}" for k, v in {**review.versions}.items())
    load = ", ".join(f"{one:.1f}" for one in review.load)
    said = (
        f"{review.archived:,} archived jobs of a month (a fifth failed, in 10,000 "
        f"failure groups) and {review.queued:,} queued ones; PostgreSQL with 1 GB of "
        f"shared buffers, no autovacuum; {review.rounds} requests of each page, in "
        f"turns, through Django's test client, on {review.date}. Milliseconds; of "
        "several pages the least and the greatest figure. CPU is the time that Django "
        "and PostgreSQL kept processors busy: other work ran on the machine (load "
        f"before and after: {load}), which the clock shows. {facts}."
    )
    limits = (
        f"Over the limit of 200 ms of CPU at the 95th percentile: {'; '.join(over)}."
        if over
        else "No page takes more than its limit: 200 ms of CPU at the 95th percentile."
    )
    return "\n\n".join(
        [
            prose(said),
            *([prose(review.note)] if review.note else []),
            "\n".join(_pages(review)),
            prose(limits),
            "\n".join(_searches(review)),
            "\n".join(_exports(review)),
        ]
    )


def _all(review: Review) -> list[Measured]:
    return [*review.pages, *review.drafts]


def _pages(review: Review) -> Iterator[str]:
    yield line(("pages", "p50", "p95", "CPU, p50", "CPU, p95", "SQL statements"))
    yield line(("---", *["---:"] * 5))
    for title, some in groupby(_all(review), key=lambda page: page.title):
        pages = list(some)
        names = ", ".join(page.name for page in pages)
        yield line(
            (
                f"{title}: {names}",
                _range(page.p50 for page in pages),
                _range(page.p95 for page in pages),
                _range(page.work_p50 for page in pages),
                _range(page.work_p95 for page in pages),
                _range(page.queries for page in pages if page.queries) or "–",
            )
        )


def _searches(review: Review) -> Iterator[str]:
    yield line(("an order 30 days old, by", "clicks", "requests", "seconds", "CPU, s"))
    yield line(("---", *["---:"] * 4))
    for one in review.searches:
        cells = (one.clicks, one.requests, one.seconds, one.work)
        yield line((one.name, *(number(cell) for cell in cells)))


def _exports(review: Review) -> Iterator[str]:
    yield line(("export", "jobs", "jobs/s", "CPU, s", "file, MB", "memory, MiB"))
    yield line(("---", *["---:"] * 5))
    for one in review.exports:
        cells = (one.rows, one.rate, one.work, one.megabytes, one.grown_mb)
        yield line((one.name, *(number(cell) for cell in cells)))


def _range(values: Iterable[float]) -> str:
    found = sorted(round(value) for value in values)
    if not found:
        return ""
    least, most = number(found[0]), number(found[-1])
    return least if least == most else f"{least}–{most}"
