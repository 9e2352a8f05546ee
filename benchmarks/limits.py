"""What limits cost: claims by key, and claims within a rate, beside plain ones.

Claims of each kind take turns, in a database of its own on the server of the test
suite; each claim is a transaction. Prints the median milliseconds of a claim, and the
ratio to a plain one of as many jobs. ``capped``: each key has a limit of 1; ``turns``:
the keys only take turns; ``strict``: with a limit of 1 in strict order; ``rated``: the
type has a rate, which lets all of them start; ``weighed``: the rate counts weights;
``keyrate``: each key has a rate.
``--waiting 1000000`` takes some minutes; ``--page`` keeps the figures for the
documentation.

    python -m benchmarks.limits --waiting 100000 --keys 1000,100000 --rounds 200
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final

from benchmarks.kept import keep, place_of, section_of
from benchmarks.own_database import own_database
from benchmarks.tables import line

RESULTS: Final = place_of("limits")
SIZES: Final = (1, 10, 20)  # jobs of a claim: what there are free slots for
FILL: Final = """
INSERT INTO jobqueue_queuedjob (job_type, queue, priority, data, limit_key, run_after)
SELECT %(type)s, 'default', 0, '{}', %(type)s || ' ' || n %% %(keys)s,
       clock_timestamp() - interval '1 hour' + n * interval '1 us'
  FROM generate_series(1, %(count)s) AS n
"""
END: Final = """
DELETE FROM jobqueue_queuedjob WHERE status = 'running' AND id = ANY (%(ids)s)
"""
WORDS: Final = {
    "plain": "without limits",
    "turns": "keys take turns",
    "capped": "a limit of 1 of each key",
    "strict": "the same in strict order",
    "rated": "a rate of the type",
    "weighed": "a rate that counts weights",
    "keyrate": "a rate of each key",
}
Claim = Callable[[int], list[Any]]


def main() -> None:
    """Measure, print, and drop the database again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", type=int, default=20_000, help="jobs of a kind")
    parser.add_argument("--keys", default="1000,10000")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument(
        "--page", action="store_true", help="keep the figures for the documentation"
    )
    options = parser.parse_args()

    found: dict[str, dict[str, dict[str, float]]] = {}
    with own_database("limits"):
        for keys in map(int, options.keys.split(",")):
            fill(keys, options.waiting)
            found[str(keys)] = measure(keys, options.waiting, options.rounds)
    if options.page:
        about = {"date": date.today().isoformat(), "waiting": options.waiting}
        keep(RESULTS, {**about, "keys": found})


def fill(keys: int, waiting: int) -> None:
    """As many jobs of each kind, of these keys in turn."""
    from django.db import connection

    from django_jobqueue import PerKey, Rate, job
    from django_jobqueue.domain.registry import registry
    from django_jobqueue.store import job_types
    from django_jobqueue.store.connection import DjangoDatabase

    def work(key: int = 1) -> None: ...

    options: dict[str, Any] = {
        "plain": {},
        "capped": {"per_key": PerKey("key", concurrency=1)},
        "turns": {"per_key": PerKey("key")},
        "strict": {"per_key": PerKey("key", concurrency=1, strict=True)},
        "rated": {"rate": Rate(10_000, per=1, burst=5_000)},
        "weighed": {"rate": Rate(10_000, per=1, burst=5_000, weight="key")},
        "keyrate": {"per_key": PerKey("key", rate=Rate(10_000, per=1, burst=5_000))},
    }
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE jobqueue_queuedjob")
        for kind, given in options.items():
            if registry.get(f"bench.{kind}") is None:
                handler = job(name=f"bench.{kind}", **given)(work)
                job_types.declare(DjangoDatabase(), [handler.declaration])
            values = {"type": f"bench.{kind}", "keys": keys, "count": waiting}
            cursor.execute(FILL, values)
        cursor.execute(
            "UPDATE jobqueue_queuedjob SET limit_key = NULL "
            "WHERE job_type IN ('bench.plain', 'bench.rated', 'bench.weighed')"
        )
        cursor.execute("VACUUM ANALYZE jobqueue_queuedjob")


def claims(db: Any) -> dict[str, Claim]:
    """A function for each kind, which claims so many jobs as a worker does."""
    from django_jobqueue.store.queue.claim import claim
    from django_jobqueue.store.queue.claim_keyed import KeyedLane, claim_keyed
    from django_jobqueue.store.queue.claim_keyed_rated import claim_keyed_rated
    from django_jobqueue.store.queue.claim_rated import claim_rated
    from django_jobqueue.store.queue.claim_weighed import claim_weighed
    from django_jobqueue.store.queue.lanes import LaneMark
    from django_jobqueue.store.rows import Lane

    first = {"capped": "", "turns": "", "strict": "", "keyrate": ""}

    def plain(limit: int) -> list[Any]:
        return claim(db, 1, [LaneMark(Lane("default", 0, "bench.plain"))], limit)

    def rated(limit: int) -> list[Any]:
        lane = LaneMark(Lane("default", 0, "bench.rated"))
        return claim_rated(db, 1, [lane], limit)[0]

    def weighed(limit: int) -> list[Any]:
        lane = LaneMark(Lane("default", 0, "bench.weighed"))
        return claim_weighed(db, 1, [lane], limit)[0]

    def keyed(kind: str) -> Claim:
        def claim_some(limit: int) -> list[Any]:
            lane = KeyedLane(
                lane=Lane("default", 0, f"bench.{kind}"),
                limit_name=f"bench.{kind}",
                locks_limit=kind != "turns",
                locks_type=kind == "keyrate",
                first=first[kind],
                strict=kind == "strict",
            )
            if kind == "keyrate":
                jobs = claim_keyed_rated(db, 1, lane, limit)[0]
            else:
                jobs = claim_keyed(db, 1, lane, limit)
            if jobs:
                first[kind] = f"{jobs[-1].limit_key}\x01"
            return jobs

        return claim_some

    return {
        "plain": plain,
        "capped": keyed("capped"),
        "turns": keyed("turns"),
        "strict": keyed("strict"),
        "keyrate": keyed("keyrate"),
        "rated": rated,
        "weighed": weighed,
    }


def measure(keys: int, waiting: int, rounds: int) -> dict[str, dict[str, float]]:
    """Claim in turns, and print the medians; returns the milliseconds of each kind, by
    the jobs of a claim."""
    from django.db import connection

    from django_jobqueue.store.connection import OwnConnection
    from django_jobqueue.store.session import PINNED

    print(f"{keys:,} keys, {waiting:,} jobs waiting")
    db = OwnConnection("benchmark", plans=PINNED)
    by_kind = claims(db)
    found: dict[str, dict[str, float]] = {}
    for size in SIZES:
        times: dict[str, list[float]] = {kind: [] for kind in by_kind}
        for _ in range(rounds):
            for kind, claim in by_kind.items():
                began = time.perf_counter()
                jobs = claim(size)
                times[kind].append(time.perf_counter() - began)
                assert len(jobs) == size, (kind, len(jobs))
                with connection.cursor() as cursor:
                    cursor.execute(END, {"ids": [one.id for one in jobs]})
        medians = {k: statistics.median(values) * 1e3 for k, values in times.items()}
        found[str(size)] = medians
        for kind, median in medians.items():
            print(
                f"  {size:3} jobs {kind:8} {median:8.2f} ms"
                f" {median / medians['plain']:6.2f} ×"
            )
    db.close()
    return found


def table(content: Mapping[str, Any]) -> str:
    """The ratios to plain claims, as Markdown."""
    heads = [
        f"{int(keys):,} keys, {size} job{'s' * (size != 1)}"
        for keys in content["keys"]
        for size in SIZES
    ]
    rows = [line(("Claim", *heads)), line(("---", *["---:"] * len(heads)))]
    for kind, words in WORDS.items():
        cells = []
        for by_size in content["keys"].values():
            for medians in by_size.values():
                ratio = medians[kind] / medians["plain"]
                cells.append(
                    f"{medians[kind]:.2f} ms" if kind == "plain" else f"{ratio:.2f} ×"
                )
        rows.append(line((words, *cells)))
    return "\n".join(rows)


def section() -> str:
    """What the page of the documentation says of the last run with ``--page``."""
    return section_of(RESULTS, _in_words)


def _in_words(content: Mapping[str, Any]) -> str:
    return (
        f"{table(content)}\n\nMedians, {content['waiting']:,} jobs of each kind "
        f"waiting, on {content['date']}."
    )


if __name__ == "__main__":
    main()
