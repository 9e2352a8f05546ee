"""The enqueuing process of a system: a JSON command a line in, an answer a line out.

    python -m benchmarks.client pgqueuer_app

``many`` takes the bulk path, ``copies`` alternates it with a bare COPY, ``singles``
alternates blocks of single enqueues and bare INSERTs, ``paced`` enqueues one job after
each of some pauses, ``steady`` so many a second, ``during`` as many as it can,
``soak`` jobs of all kinds. The systems that run on Node have the same in
``node/common.mjs``, but for ``copies`` and ``soak``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

import psycopg

from benchmarks.apps.base import App, CopyingApp, PostgresApp, SoakingApp

Answer = dict[str, Any]


def many(app: App, *, numbers: list[int], ms: int, is_async: bool) -> Answer:
    """Enqueue these in bulk; answers how long it took, in ns."""
    return {"ns": _timed(app.enqueue_many, range(*numbers), ms, is_async)}


def copies(app: CopyingApp, *, blocks: int, of: int) -> Answer:
    """Bulk enqueues and bare COPYs of so many rows in turn; answers the ns of each."""
    enqueues, bare = [], []
    with psycopg.connect(autocommit=True) as connection:
        for block in range(blocks):
            numbers = range(block * of, (block + 1) * of)
            rows = app.rows(numbers)
            enqueues.append(_timed(app.enqueue_many, numbers, 0, False))
            bare.append(_timed(app.copy, connection, rows))
    return {"enqueues": enqueues, "bare": bare}


def singles(app: App, *, blocks: int, of: int) -> Answer:
    """Blocks of enqueues and of bare INSERTs, prepared and not, in turn; answers the
    ns of each call.

    A system without PostgreSQL has no INSERTs.
    """
    calls: dict[str, Callable[[int], None]] = {
        "enqueues": lambda number: app.enqueue(number, 0)
    }
    if hasattr(app, "insert"):
        calls |= {"inserts": _insert(app), "planned": _insert(app, prepared=False)}
    took: Answer = {name: [] for name in calls}
    for block in range(blocks + 1):
        numbers = range(block * of, (block + 1) * of)
        for name, call in calls.items():
            ns = [_timed(call, number) for number in numbers]
            if block:  # the first one is to warm up
                took[name] += ns
    return took


def paced(app: App, *, first: int, pauses: list[float]) -> Answer:
    """One job after each pause; answers when each enqueue had returned, in ns."""
    returned = []
    for number, pause in enumerate(pauses, first):
        time.sleep(pause)
        app.enqueue(number, 0)
        returned.append(time.monotonic_ns())
    return {"returned": returned}


def steady(app: App, *, first: int, jobs: int, rate: float, ms: int) -> Answer:
    """So many a second, whatever each takes; answers when each was begun, in ns."""
    began = time.monotonic_ns()
    called = []
    for i in range(jobs):
        time.sleep(max(0.0, (began + i / rate * 1e9 - time.monotonic_ns()) / 1e9))
        called.append(time.monotonic_ns())
        app.enqueue(first + i, ms)
    return {"called": called}


def during(app: App, *, first: int, seconds: float, bare: bool) -> Answer:
    """As many enqueues, or bare INSERTs, as can be done; answers how many."""
    insert = _insert(app) if bare else None
    until = time.monotonic() + seconds
    done = 0
    while time.monotonic() < until:
        if insert is not None:
            insert(first + done)
        else:
            app.enqueue(first + done, 0)
        done += 1
    return {"done": done}


def soak(app: SoakingApp, *, seconds: float) -> Answer:
    """Jobs of all kinds, each at its rate; answers how many of each."""
    return {**app.soak(seconds)}


def _insert(app: App, *, prepared: bool = True) -> Callable[[int], None]:
    """The bare INSERT, on a connection of its own, of a system on PostgreSQL; psycopg
    prepares what is run often, unless told not to."""
    connection = psycopg.connect(
        autocommit=True, prepare_threshold=5 if prepared else None
    )
    return lambda number: cast(PostgresApp, app).insert(connection, number)


def _timed(call: Callable[..., None], *arguments: Any) -> int:
    began = time.monotonic_ns()
    call(*arguments)
    return time.monotonic_ns() - began


def main() -> None:
    """Obey until the input ends."""
    app = import_module(f"benchmarks.apps.{sys.argv[1]}")
    if sys.argv[2:] == ["install"]:
        cast(PostgresApp, app).install()
        return
    cast(App, app).connect()
    verbs: dict[str, Callable[..., Answer]] = {
        "many": many,
        "copies": copies,
        "singles": singles,
        "paced": paced,
        "steady": steady,
        "during": during,
        "soak": soak,
    }
    print("{}", flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        answer = verbs[command.pop("do")](app, **command)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
