"""What it costs to know many lanes: how long a worker takes to see which have jobs.

In a database of its own on the server of the test suite, with 3,000 job types; lanes
are those of up to 100 queues. A worker has seen jobs in all of them. Then it looks
while one has a job, and while each has one; the numbers of lanes take turns. ``--page``
keeps the figures for the documentation.

    python -m benchmarks.lanes --lanes 1,100,1000 --rounds 20
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from datetime import date
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from benchmarks.kept import keep, place_of, section_of
from benchmarks.own_database import own_database
from benchmarks.tables import line

if TYPE_CHECKING:
    from django_jobqueue.store.connection import OwnConnection
    from django_jobqueue.workers.claiming.lane_scanner import LaneScanner

RESULTS: Final = place_of("lanes")
JOB_TYPES: Final = 3_000
QUEUES: Final = 100
LOOKS: Final = 10  # of each round
DECLARE: Final = """
INSERT INTO jobqueue_jobtype (name)
SELECT 'type ' || n FROM generate_series(1, %(count)s) AS n
"""
FILL: Final = """
INSERT INTO jobqueue_queuedjob (job_type, queue, data, run_after)
SELECT 'type ' || 3 * n, 'queue ' || n %% %(queues)s, '{}',
       clock_timestamp() - interval '1 hour'
  FROM generate_series(1, %(count)s) AS n
"""
LEAVE_ONE: Final = """
DELETE FROM jobqueue_queuedjob
 WHERE id <> (SELECT id FROM jobqueue_queuedjob ORDER BY id LIMIT 1)
"""
STATES: Final = {"one": "one has a job", "each": "each has a job"}
Times = dict[str, dict[int, list[float]]]  # ms


def main() -> None:
    """Measure, print, and drop the database again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lanes", default="1,100,1000")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument(
        "--page", action="store_true", help="keep the figures for the documentation"
    )
    options = parser.parse_args()
    numbers = [*map(int, options.lanes.split(","))]
    times: Times = {state: {number: [] for number in numbers} for state in STATES}
    with own_database("lanes"):
        from django_jobqueue.store.connection import OwnConnection
        from django_jobqueue.store.session import PINNED

        db = OwnConnection("benchmark", plans=PINNED)
        db.run(DECLARE, {"count": JOB_TYPES})
        for _ in range(options.rounds):
            for number in numbers:
                measure(db, number, times)
        db.close()
    content = {
        "date": date.today().isoformat(),
        "lanes": {
            state: {str(number): median(found) for number, found in row.items()}
            for state, row in times.items()
        },
    }
    print(table(content))
    if options.page:
        keep(RESULTS, content)


def measure(db: OwnConnection, number: int, times: Times) -> None:
    """Some looks at so many lanes in both states."""
    from django_jobqueue.workers.claiming.known_lanes import Lanes
    from django_jobqueue.workers.claiming.lane_scanner import LaneScanner

    scanner = LaneScanner(db, Lanes())
    db.run("TRUNCATE jobqueue_queuedjob")
    db.run(FILL, {"count": number, "queues": QUEUES})
    db.run("VACUUM ANALYZE jobqueue_queuedjob")
    assert len(scanner.scan()) == number
    times["each"][number] += looks(scanner, number)
    db.run(LEAVE_ONE)
    db.run("VACUUM ANALYZE jobqueue_queuedjob")
    scanner.scan()
    times["one"][number] += looks(scanner, 1)


def looks(scanner: LaneScanner, expected: int) -> list[float]:
    """The milliseconds of looks that find so many lanes due."""
    found = []
    for _ in range(LOOKS):
        began = time.perf_counter()
        due = scanner.scan()
        found.append((time.perf_counter() - began) * 1e3)
        assert len(due) == expected
    return found


def table(content: Mapping[str, Any]) -> str:
    """The figures as Markdown."""
    numbers = list(content["lanes"]["one"])
    rows = [
        ("A look at", *(f"{int(n):,} lane{'s' * (n != '1')}" for n in numbers)),
        ("---", *["---:"] * len(numbers)),
    ]
    for state, words in STATES.items():
        medians = content["lanes"][state]
        first = medians[numbers[0]]
        cells = (f"{m:.2f} ms ({m / first:.2f} ×)" for m in medians.values())
        rows.append((words, *cells))
    return "\n".join(map(line, rows))


def section() -> str:
    """What the page of the documentation says of the last run with ``--page``."""
    return section_of(RESULTS, _in_words)


def _in_words(content: Mapping[str, Any]) -> str:
    return f"{table(content)}\n\nMedians, on {content['date']}."


if __name__ == "__main__":
    main()
