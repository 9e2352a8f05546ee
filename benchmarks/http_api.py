"""What an enqueue over HTTP costs beside a view with a bare INSERT, in turns.

In a database of its own on the server of the test suite, through Django's request
handler without a socket, so that no web server's cost is in it. In a block each view is
asked as often: the API's PUT with a token; the same with many jobs in a POST; a view of
a few lines that reads JSON and inserts a row; and ``enqueue()`` itself. Prints the
microseconds of this process and of the wall for a job, and the ratios to the view.

    python -m benchmarks.http_api --rounds 10
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

from benchmarks.own_database import own_database

BLOCK: Final = 300  # requests
AT_ONCE: Final = 100  # jobs of one POST
PATH: Final = "/jobqueue/v1/jobs/tests.sample.keep"

Send = Callable[[], None]


def main() -> None:
    """Measure, print, and drop the database again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()

    with own_database("http_api"):
        report(measure(options.rounds))


def measure(rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Microseconds of wall and CPU for a job, of each block, by the way."""
    ways = senders()
    measured: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for send, _jobs in ways.values():
        block(send, 20)  # warms up
    for turn in range(rounds):
        names = list(ways) if turn % 2 else list(reversed(ways))
        for way in names:
            send, jobs = ways[way]
            wall, cpu = block(send, max(3, BLOCK // jobs))
            measured[way].append((wall / jobs * 1e6, cpu / jobs * 1e6))
    return measured


def senders() -> dict[str, tuple[Send, int]]:
    """A function for each way that sends one request, and its number of jobs."""
    from django.test import Client
    from django.urls import path

    from benchmarks.bare_view import bare
    from django_jobqueue.contrib.http.token_operations import create_token
    from tests import urls
    from tests.sample.jobs import keep

    urls.urlpatterns.insert(0, path("bare", bare, {"job_type": keep.name}))
    token = create_token("benchmark", "enqueue").text
    client = Client(headers={"Authorization": f"Bearer {token}"})
    data = {"a": 7, "b": "a text of some length"}
    one = json.dumps({"data": data}).encode()
    many = json.dumps({"jobs": [{"data": data}] * AT_ONCE}).encode()
    keep.enqueue(**data)

    def send(method: str, where: str, body: bytes) -> None:
        answer: Any = client.generic(
            method, where, body, content_type="application/json", secure=True
        )
        assert answer.status_code == 202, answer.content

    return {
        "PUT": (lambda: send("PUT", f"{PATH}/job_{uuid4()}", one), 1),
        f"POST of {AT_ONCE}": (lambda: send("POST", PATH, many), AT_ONCE),
        "bare view": (lambda: send("POST", "/bare", one), 1),
        "enqueue()": (lambda: keep.enqueue(**data) and None, 1),
    }


def block(send: Send, requests: int) -> tuple[float, float]:
    """Seconds of wall and CPU for so many requests."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(requests):
        send()
    return (
        (time.perf_counter() - wall) / requests,
        (time.process_time() - cpu) / requests,
    )


def report(measured: dict[str, list[tuple[float, float]]]) -> None:
    """Print medians, and ratios of the same round to the bare view."""
    print(f"{'':14}{'wall µs':>10}{'CPU µs':>10}{'wall ratio':>12}{'CPU ratio':>11}")
    bare = measured["bare view"]
    for way, values in measured.items():
        wall, cpu = (statistics.median(column) for column in zip(*values, strict=True))
        pairs = list(zip(values, bare, strict=True))
        ratios = [
            statistics.median(mine[n] / theirs[n] for mine, theirs in pairs)
            for n in (0, 1)
        ]
        print(f"{way:14}{wall:10.0f}{cpu:10.0f}{ratios[0]:12.2f}{ratios[1]:11.2f}")


if __name__ == "__main__":
    main()
