"""The HTTP API under load, behind a real web server: enqueues, and long polls.

``--server gunicorn``: one process a core with 8 threads each, asked by 16 clients that
keep their connections. The API's PUT and a view with a bare INSERT take turns; prints
the enqueues a second of each, medians of the rounds, and their ratio.

``--server uvicorn``: as many remote workers as ``--polls`` says wait for a job in one
ASGI process, and then as many jobs are enqueued; prints when they were answered, and
what the process holds meanwhile.

It needs gunicorn and uvicorn, and a PostgreSQL of its own, which it starts.

    python -m benchmarks.http_load --server gunicorn --rounds 7
    python -m benchmarks.http_load --server uvicorn --polls 200
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psutil

from benchmarks.server import Postgres

CLIENTS: Final = 16
SECONDS: Final = 3.0  # of each view in a round
DATA: Final = {"data": {"a": 7, "b": "a text of some length"}}
SITE: Final = "benchmarks.http_site"
COMMANDS: Final = {
    "gunicorn": ["-m", "gunicorn", f"{SITE}:application", "-k", "gthread"],
    "uvicorn": ["-m", "uvicorn", f"{SITE}:asgi", "--log-level", "warning"],
}


def main() -> None:
    """Start the servers, measure, print, and stop them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", choices=COMMANDS, default="gunicorn")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--polls", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        postgres = Postgres(Path(folder))
        try:
            postgres.create("load")
            environment = {**os.environ, **postgres.env("load"), "KEEP": "1"}
            token = prepare(environment)
            web, port = start(options.server, environment)
            try:
                if options.server == "gunicorn":
                    asyncio.run(enqueues(port, token, options.rounds))
                else:
                    asyncio.run(polls(port, token, options.polls, web.pid, postgres))
            finally:
                web.terminate()
                web.wait()
        finally:
            postgres.stop()


def prepare(environment: dict[str, str]) -> str:
    """Migrate, declare the job types, and make a token."""
    code = f"""
import {SITE}
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django_jobqueue.contrib.http.token_operations import create_token
print(create_token("load", ["enqueue", "work", "read"]).text)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.split()[-1]


def start(server: str, environment: dict[str, str]) -> tuple[Any, int]:
    """A web server on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cores = str(os.cpu_count() or 1)
    where = {
        "gunicorn": ["-b", f"127.0.0.1:{port}", "-w", cores, "--threads", "8"],
        "uvicorn": ["--port", str(port)],
    }[server]
    web = subprocess.Popen([sys.executable, *COMMANDS[server], *where], env=environment)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return web, port
        time.sleep(0.1)
    raise TimeoutError(f"{server} did not start.")


class Client:
    """A client that keeps its connection."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._head = f"Host: x\r\nAuthorization: Bearer {token}\r\n"
        self._stream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        if self._stream is None:
            self._stream = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._stream
        text = json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\n{self._head}Content-Type: application/json"
            f"\r\nContent-Length: {len(text)}\r\n\r\n"
        )
        writer.write(head.encode() + text)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(answer.partition("content-length: ")[2].split("\r\n")[0])
        content = await reader.readexactly(length)
        if "connection: close" in answer:
            writer.close()
            self._stream = None
        return int(answer.split()[1]), content


async def enqueues(port: int, token: str, rounds: int) -> None:
    """Both views in turns."""
    clients = [Client(port, token) for _ in range(CLIENTS)]
    views: dict[str, Callable[[], tuple[str, str]]] = {
        "PUT": lambda: ("PUT", f"/jobqueue/v1/jobs/load.keep/job_{uuid4()}"),
        "bare view": lambda: ("POST", "/bare"),
    }
    rates: dict[str, list[float]] = {name: [] for name in views}
    for _ in range(rounds + 1):  # the first one warms up
        for name, where in views.items():
            rates[name].append(await rate(clients, where))
    medians = {name: statistics.median(each[1:]) for name, each in rates.items()}
    for name, median in medians.items():
        print(f"{name:10} {median:8,.0f} a second")
    print(f"PUT / bare {medians['PUT'] / medians['bare view']:8.2f}")


async def rate(clients: list[Client], where: Callable[[], tuple[str, str]]) -> float:
    """Requests a second of all clients."""
    began = time.perf_counter()

    async def ask(client: Client) -> int:
        done = 0
        while time.perf_counter() - began < SECONDS:
            status, content = await client.send(*where(), DATA)
            assert status == 202, content
            done += 1
        return done

    counts = await asyncio.gather(*map(ask, clients))
    return sum(counts) / (time.perf_counter() - began)


async def polls(
    port: int, token: str, number: int, pid: int, postgres: Postgres
) -> None:
    """So many workers wait; then each gets a job."""
    clients = [Client(port, token) for _ in range(number)]
    ids = [await register(client, n) for n, client in enumerate(clients)]
    answered: list[float] = []

    async def wait(client: Client, id: str) -> int:
        path = f"/jobqueue/v1/workers/{id}/claim"
        status, content = await client.send("POST", path, {"limit": 1, "wait": 30})
        assert status == 200, content
        answered.append(time.perf_counter())
        return len(json.loads(content)["jobs"])

    waiting = [
        asyncio.create_task(wait(client, id))
        for client, id in zip(clients, ids, strict=True)
    ]
    await asyncio.sleep(5)
    print(f"{sum(one.done() for one in waiting)} of {number} were answered at once")
    describe(pid, postgres)
    other, began = Client(port, token), time.perf_counter()
    jobs = {"jobs": [{"data": {"n": n}} for n in range(number)]}
    status, content = await other.send("POST", "/jobqueue/v1/jobs/load.fetch", jobs)
    assert status == 202, content
    enqueued = time.perf_counter()
    got = await asyncio.gather(*waiting)
    waits = sorted(at - began for at in answered)
    median = statistics.median(waits)
    print(
        f"{sum(got)} jobs claimed; the enqueue took {enqueued - began:.2f} s, and the "
        f"answers came after {waits[0]:.2f} s (first), {median:.2f} s (median) and "
        f"{waits[-1]:.2f} s (last)"
    )


async def register(client: Client, number: int) -> str:
    """A remote worker of these jobs."""
    body = {"name": f"node-{number}", "job_types": ["load.fetch"], "slots": 1}
    status, content = await client.send("POST", "/jobqueue/v1/workers", body)
    assert status == 201, content
    id: str = json.loads(content)["id"]
    return id


def describe(pid: int, postgres: Postgres) -> None:
    """What the web server holds."""
    process = psutil.Process(pid)
    connections = postgres.number(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = 'load'"
    )
    print(
        f"{process.num_threads()} threads, {connections} connections to PostgreSQL, "
        f"{process.memory_info().rss / 2**20:,.0f} MiB"
    )


if __name__ == "__main__":
    main()
