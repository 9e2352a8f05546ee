"""A soak: enqueues jobs of all kinds for some minutes, and watches."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any, Final

from benchmarks.figures import number
from benchmarks.journal import Record
from benchmarks.machine import machine
from benchmarks.processes import Command, Failed, Workers, until
from benchmarks.site import Site, Trial
from benchmarks.soak.kinds import KEYS, WAIT, Mix
from benchmarks.soak.observer import Observer, Sample
from benchmarks.systems import OURS
from benchmarks.systems.base import Load, django

EVERY: Final = 5.0  # seconds between two looks
PATIENCE: Final = 120.0  # seconds from the last enqueue to the end of all jobs
# What is archived for longer is pruned, so that the archive has its size soon.
FLAGS: Final = (
    *("--processes", "2", "--threads", "8"),
    *("--retention", "succeeded=300,failed=300", "--prune-interval", "20"),
)


def _commands(load: Load, processes: int) -> Sequence[Command]:
    return [Command(arguments=django("runworkers", *FLAGS))]


SYSTEM: Final = replace(OURS, app="soak_app", commands=_commands)


def soak(site: Site, minutes: float, every: float = EVERY) -> dict[str, Any]:
    """Run it; returns what there is to tell. Raises Failed if a job was lost."""
    samples: list[Sample] = []
    with (
        ThreadPoolExecutor(1) as pool,  # ends when the enqueuer has
        site.trial(SYSTEM) as trial,
        trial.enqueuer() as enqueuer,
    ):
        workers = trial.start(Load.DRAIN)
        observer = Observer(trial, workers)
        enqueued = pool.submit(enqueuer.soak, minutes * 60)
        while not enqueued.done():
            time.sleep(every)
            workers.check()
            samples.append(observer.look())
            _say(samples[-1])
        done = {Mix[name]: count for name, count in enqueued.result().items()}
        _check(trial, workers, done)
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": machine(),
        "jobs": {mix.name.lower(): count for mix, count in sorted(done.items())},
        "samples": [asdict(sample) for sample in samples],
    }


def _check(trial: Trial, workers: Workers, enqueued: Mapping[Mix, int]) -> None:
    """Every job has run as often as it should, and is gone from the queue."""
    wanted = {mix: count * mix.runs for mix, count in enqueued.items()}
    wanted[Mix.KEYED_END] = wanted[Mix.KEYED]
    until(
        lambda: trial.journal.has(sum(wanted.values())) and not _left(trial),
        PATIENCE + WAIT,
        workers=workers,
        every=0.1,
    )
    records = trial.journal.records()
    ran = Counter(Mix(record.kind) for record in records)
    if ran != wanted or _left(trial):
        raise Failed(f"{_left(trial)} jobs are left; of {wanted} these ran: {ran}.")
    written = trial.place.number("SELECT count(*) FROM soak_write")
    if written != enqueued[Mix.ATOMIC]:
        raise Failed(f"{enqueued[Mix.ATOMIC]} atomic jobs wrote {written} rows.")
    if at_once := _keys_at_once(records):
        raise Failed(f"Two jobs of a key ran at once: {at_once}.")


def _keys_at_once(records: Iterable[Record]) -> list[Record]:
    """The starts of jobs whose key had a job that ran."""
    busy: set[int] = set()
    found: list[Record] = []
    for record in sorted(records, key=lambda record: record.at):
        key = record.number % KEYS
        if record.kind == Mix.KEYED:
            if key in busy:
                found.append(record)
            busy.add(key)
        elif record.kind == Mix.KEYED_END:
            busy.discard(key)
    return found


def _left(trial: Trial) -> int:
    return trial.place.number("SELECT count(*) FROM jobqueue_queuedjob")


def _say(sample: Sample) -> None:
    texts = (f"{key} {number(value)}" for key, value in asdict(sample).items())
    print("  ".join(texts), flush=True)
