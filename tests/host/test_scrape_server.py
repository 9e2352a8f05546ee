"""The small HTTP server of the exporter: what it takes, and what it does not."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http import HTTPStatus

import pytest

from django_jobqueue.host.exporter import scrape_server
from django_jobqueue.host.exporter.answers import Answers
from django_jobqueue.host.exporter.cluster_reader import ClusterReader
from django_jobqueue.host.exporter.host_samples import HostSamples
from django_jobqueue.host.exporter.scrape_server import (
    CONNECTIONS,
    LONGEST_HEAD,
    Request,
    Response,
    ScrapeServer,
    listen,
    text,
    url_of,
)
from django_jobqueue.metrics import exposition
from django_jobqueue.processes.host_counters import HostCounters
from django_jobqueue.processes.process_table import ProcessTable
from tests.support.waiting import eventually

Ask = Callable[[bytes], tuple[str, bytes]]


def echo(request: Request) -> Response:
    if request.path == "/broken":
        raise ValueError
    return text(HTTPStatus.OK, f"{request.method} {request.path} {request.headers}")


def connect(listening: socket.socket) -> socket.socket:
    return socket.create_connection(listening.getsockname()[:2], timeout=20)


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with listen("127.0.0.1", 0) as made:
        yield made


def answer_to(listening: socket.socket, sent: bytes) -> tuple[str, bytes]:
    """Status line and headers, and the body, that this request gets."""
    server = ScrapeServer(listening, echo)
    with connect(listening) as client:
        client.sendall(sent)
        eventually(lambda: server.accept() or not server.is_idle or _has(client))
        received = b""
        while part := client.recv(65_536):
            received += part
    eventually(lambda: server.is_idle)
    head, _, body = received.partition(b"\r\n\r\n")
    return head.decode(), body


def _has(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return bool(client.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
    finally:
        client.settimeout(20)


@pytest.mark.parametrize(
    ("sent", "status", "body"),
    [
        (b"GET /a?b=c HTTP/1.1\r\n\r\n", "200 OK", b"GET /a {}\n"),
        (b"GET / HTTP/1.0\r\nA: b\r\n\r\n", "200 OK", b"GET / {'a': 'b'}\n"),
        (b"HEAD /a HTTP/1.1\r\n\r\n", "200 OK", b""),
        (b"POST /a HTTP/1.1\r\n\r\n", "405 Method Not Allowed", None),
        (b"GET /broken HTTP/1.1\r\n\r\n", "500 Internal Server Error", None),
        (b"nonsense\r\n\r\n", "400 Bad Request", None),
        (b"GET / HTTP/9\r\n\r\n", "400 Bad Request", None),
        (
            b"GET / HTTP/1.1\r\nA: " + b"b" * LONGEST_HEAD,
            "431 Request Header Fields Too Large",
            None,
        ),
    ],
)
def test_a_request_gets_its_answer(
    listening: socket.socket, sent: bytes, status: str, body: bytes | None
) -> None:
    head, received = answer_to(listening, sent)
    assert head.startswith(f"HTTP/1.1 {status}\r\n")
    assert "\r\nCache-Control: no-store\r\nConnection: close" in head
    if body is not None:
        assert received == body
    if sent.startswith(b"HEAD"):
        assert "\r\nContent-Length: 11\r\n" in head


def test_clients_that_say_nothing_take_all_places_only_for_a_while(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrape_server, "SECONDS", 0.5)
    server = ScrapeServer(listening, echo)
    clients = [connect(listening) for _ in range(CONNECTIONS)]
    for _ in clients:
        server.accept()
    assert eventually(lambda: server.is_full or server.is_idle)
    eventually(lambda: server.is_idle)
    for client in clients:
        assert client.recv(1) == b""
        client.close()


def test_a_system_without_room_for_a_thread_closes_the_connection(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_room)
    server = ScrapeServer(listening, echo)
    with connect(listening) as client:
        server.accept()
        assert client.recv(1) == b""
    assert server.is_idle


def test_an_address_is_written_as_a_url(listening: socket.socket) -> None:
    port = listening.getsockname()[1]
    assert url_of(listening) == f"http://127.0.0.1:{port}"
    with closing(listen("::1", 0)) as other:
        assert url_of(other).startswith("http://[::1]:")


# What the paths answer, from memory that no process writes.


@pytest.fixture
def table() -> ProcessTable:
    return ProcessTable(2)


@pytest.fixture
def answers(table: ProcessTable) -> Answers:
    samples = HostSamples(table, HostCounters(2), drains=False)
    return Answers(table, samples, ClusterReader())


def get(answers: Answers, path: str) -> Response:
    return answers(Request("GET", path, {}))


def test_a_host_is_ready_until_it_stops(answers: Answers, table: ProcessTable) -> None:
    assert get(answers, "/readyz").status == 503
    table.maintenance_is_ready = True
    table.renewed_at = table.last_activity_at
    assert get(answers, "/readyz").status == 503
    table.write(0, pid=1, worker=7, held=3)
    ready = get(answers, "/readyz")
    content = json.loads(ready.body)
    assert (ready.status, content["processes"], content["held"]) == (200, 1, 3)
    table.write(0, lost=1)
    assert get(answers, "/readyz").status == 503
    table.wants_no_worker = True  # operators have parked it
    assert get(answers, "/readyz").status == 200
    table.wants_no_worker = False
    table.write(0, lost=0)
    table.is_stopping = True
    assert json.loads(get(answers, "/readyz").body)["status"] == "stopping"


def test_health_needs_no_extra_and_metrics_say_what_to_install(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise exposition.MetricsExtraMissing

    monkeypatch.setattr(exposition, "require_extra", missing)
    metrics = get(answers, "/metrics")
    assert metrics.status == 501
    assert b'pip install "django-jobqueue[metrics]"' in metrics.body
    assert get(answers, "/healthz").status == 503  # no supervisor has begun
