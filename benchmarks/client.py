"""The enqueuing process of a system: a JSON command a line in, an answer a line out.

    python -m benchmarks.client pgqueuer_app

``many`` takes the bulk path, ``singles`` alternates blocks of single enqueues and bare
INSERTs, ``paced`` enqueues one job after each of some pauses.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

import psycopg

from benchmarks.apps.base import App

Answer = dict[str, Any]


def many(app: App, *, numbers: list[int], ms: int, is_async: bool) -> Answer:
    """Enqueue these in bulk; answers how long it took, in ns."""
    first, after_last = numbers
    began = time.monotonic_ns()
    app.enqueue_many(range(first, after_last), ms, is_async)
    return {"ns": time.monotonic_ns() - began}


def singles(app: App, *, blocks: int, of: int) -> Answer:
    """Blocks of enqueues and of bare INSERTs in turn; answers the ns of each call."""
    enqueues: list[int] = []
    inserts: list[int] = []
    with psycopg.connect(autocommit=True) as connection:
        for block in range(blocks + 1):
            if block == 1:  # the first one is to warm up
                enqueues.clear()
                inserts.clear()
            numbers = range(block * of, (block + 1) * of)
            enqueues += [_timed(lambda n: app.enqueue(n, 0), n) for n in numbers]
            inserts += [_timed(lambda n: app.insert(connection, n), n) for n in numbers]
    return {"enqueues": enqueues, "inserts": inserts}


def paced(app: App, *, first: int, pauses: list[float]) -> Answer:
    """One job after each pause; answers when each enqueue had returned, in ns."""
    returned = []
    for number, pause in enumerate(pauses, first):
        time.sleep(pause)
        app.enqueue(number, 0)
        returned.append(time.monotonic_ns())
    return {"returned": returned}


def _timed(call: Callable[[int], None], number: int) -> int:
    began = time.monotonic_ns()
    call(number)
    return time.monotonic_ns() - began


def main() -> None:
    """Obey until the input ends."""
    app = cast(App, import_module(f"benchmarks.apps.{sys.argv[1]}"))
    if sys.argv[2:] == ["install"]:
        app.install()
        return
    app.connect()
    verbs: dict[str, Callable[..., Answer]] = {
        "many": many,
        "singles": singles,
        "paced": paced,
    }
    print("{}", flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        answer = verbs[command.pop("do")](app, **command)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
