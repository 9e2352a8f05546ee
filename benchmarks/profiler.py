"""Where the time of a case goes: py-spy on the workers, pg_stat_statements on the
server."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.figures import number
from benchmarks.presence import lack
from benchmarks.processes import Workers
from benchmarks.questions import QUESTIONS
from benchmarks.runner import answers
from benchmarks.server import Postgres
from benchmarks.site import Site, Trial
from benchmarks.systems.base import script
from benchmarks.tables import line

SCALE: Final = 2.0  # of the jobs, so that there is enough to look at
HERTZ: Final = 250
TOP: Final = 40  # lines of a table
WIDEST: Final = 160  # characters of a statement
LIBRARY: Final = "pg_stat_statements"
INSTALLED: Final = "/usr/lib/postgresql"  # where Debian has its versions
OPTIONS: Final = {
    "shared_preload_libraries": LIBRARY,
    "pg_stat_statements.track_utility": "off",
    "track_io_timing": "on",
}
STATEMENTS: Final = """
SELECT said.calls, said.total_exec_time, said.rows, said.wal_bytes::float8, said.query
  FROM pg_stat_statements AS said
  JOIN pg_database AS base ON base.oid = said.dbid AND base.datname = %s
 ORDER BY said.total_exec_time DESC
 LIMIT 20
"""
IMPORTS: Final = "<frozen importlib"  # the start of a process is not what is asked


def version_with_statements() -> int | None:
    """The newest PostgreSQL of the system that has pg_stat_statements."""
    found = Path(INSTALLED).glob(f"*/lib/{LIBRARY}.so")
    versions = [path.parts[-3] for path in found]
    return max((int(v) for v in versions if v.isdigit()), default=None)


class Profiler:
    """Looks at all workers of some cases; writes what it saw, trial by trial."""

    def __init__(self, server: Postgres, folder: Path, *, has_statements: bool) -> None:
        self.case = ""  # what the files are named for
        self._server = server
        self._folder = folder
        self._has_statements = has_statements
        self._trials: Counter[str] = Counter()  # by case
        self._spies: list[tuple[subprocess.Popen[bytes], Path]] = []
        folder.mkdir(parents=True, exist_ok=True)
        if has_statements:
            server.admin.execute(f"CREATE EXTENSION {LIBRARY}")

    def measure(self, site: Site, cases: Sequence[str], systems: Sequence[str]) -> None:
        """Measure these cases (``drain/one``) once for these systems."""
        site.watcher = self
        for question in QUESTIONS:
            for case in question.cases:
                if f"{question.name}/{case.name}" not in cases:
                    continue
                for system in case.systems:
                    if system.name in systems and not lack(system):
                        self.case = f"{question.name}-{case.name}-{system.name}"
                        answers(site, case, [system])

    def watch(self, trial: Trial, workers: Workers) -> None:
        """Begin to look at workers that were just started."""
        if self._has_statements:
            self._server.admin.execute("SELECT pg_stat_statements_reset()")
        for pid in () if trial.system.is_node else workers.started():
            path = self._folder / f"{pid}.stacks"
            spy = subprocess.Popen(
                [
                    # Who holds the interpreter's lock computes; others wait.
                    *script("py-spy", "record", "--nonblocking", "--threads", "--gil"),
                    *("--subprocesses", "--function", "--format", "raw"),
                    *("--rate", str(HERTZ)),
                    *("--duration", "unlimited", "--pid", str(pid)),
                    *("--output", str(path)),
                ],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            self._spies.append((spy, path))

    def write(self, trial: Trial) -> None:
        """Write what was seen; the workers are gone by now, the database is not."""
        if not len(trial.journal):
            return
        self._trials[self.case] += 1
        name = f"{self.case}-{self._trials[self.case]}"
        parts = [f"# {name}", *self._statements(trial)]
        for spy, path in self._spies:
            spy.wait()  # it ends with whom it looks at
            if path.exists():
                parts += _python(path.read_text())
                path.rename(self._folder / f"{name}-{path.name}")
        self._spies.clear()
        (self._folder / f"{name}.md").write_text("\n\n".join(parts) + "\n")

    def _statements(self, trial: Trial) -> Iterator[str]:
        if not self._has_statements or trial.system.on_redis:
            return
        rows = self._server.admin.execute(
            STATEMENTS.encode(), [trial.database.name]
        ).fetchall()
        jobs = len(trial.journal.starts())
        whole = sum(row[1] for row in rows)
        titles = ("ms/call", "calls/job", "µs/job", "rows/call", "WAL/job", "", "")
        lines = [line(titles), line(("---:",) * 6 + ("---",))]
        for calls, spent, count, wal, query in rows:
            text = " ".join(query.split())[:WIDEST].replace("|", "\\|")
            figures = (
                spent / calls,
                calls / jobs,
                spent / jobs * 1e3,
                count / calls,
                wal / jobs,
            )
            share = f"{spent / whole:.0%}"
            lines.append(line((*map(number, figures), share, f"`{text}`")))
        yield f"## The server, {jobs:,} jobs"
        yield "\n".join(lines)


def _python(stacks: str) -> Iterator[str]:
    """The functions in which most samples are, of folded stacks."""
    own: Counter[str] = Counter()
    below: Counter[str] = Counter()
    for text in stacks.splitlines():
        stack, _, count = text.rpartition(" ")
        frames = stack.split(";")
        if not any(IMPORTS in frame for frame in frames):
            own[frames[-1]] += int(count)
            for frame in set(frames):
                below[frame] += int(count)
    yield f"## Python, {own.total():,} samples"
    for title, counted in (("in itself", own), ("with what it calls", below)):
        rows = [line((title, "function")), line(("---:", "---"))]
        rows += [
            line((f"{count / own.total():.1%}", f"`{frame}`"))
            for frame, count in counted.most_common(TOP)
        ]
        yield "\n".join(rows)
