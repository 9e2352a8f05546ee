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
from django_jobqueue.host.exporter.answers import SCRAPES, Answers
from django_jobqueue.host.exporter.cluster_reader import ClusterReader
from django_jobqueue.host.exporter.host_samples import HostSamples
from django_jobqueue.host.exporter.scrape_server import (
    LONGEST_HEAD,
    Request,
    Response,
    ScrapeServer,
    listen,
    text,
    url_of,
)
from django_jobqueue.metrics import exposition
from django_jobqueue.metrics.metric import Sample
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


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n\r\n"])
def test_clients_that_say_or_read_nothing_keep_no_place(
    listening: socket.socket, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrape_server, "CONNECTIONS", 4)
    body = (
        b"x" * 8_000_000
    )  # more than the system takes for a client that reads nothing
    server = ScrapeServer(listening, lambda request: Response(HTTPStatus.OK, body))
    clients = []
    for _ in range(7):
        clients.append(connect(listening))
        clients[-1].sendall(sent)
        server.accept()
    with connect(listening) as probe:
        server.accept()
        probe.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        assert probe.recv(15) == b"HTTP/1.1 200 OK"
    for client in clients:
        client.close()
    eventually(lambda: server.is_idle)


def test_a_client_that_says_nothing_is_served_for_a_while_only(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrape_server, "SECONDS", 0.1)
    server = ScrapeServer(listening, echo)
    with connect(listening) as client:
        server.accept()
        assert client.recv(1) == b""
    eventually(lambda: server.is_idle)


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


def test_a_host_that_sleeps_in_a_copy_says_so(
    answers: Answers, table: ProcessTable
) -> None:
    table.is_asleep = True
    ready = get(answers, "/readyz")
    assert ready.status == 503
    assert json.loads(ready.body)["status"] == "asleep until jobqueue wake"


def test_scrapes_that_wait_for_the_database_take_no_place_of_probes(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, over = threading.Barrier(SCRAPES + 1), threading.Event()

    def slow(reader: ClusterReader) -> list[Sample]:
        began.wait(20)
        over.wait(20)
        return []

    monkeypatch.setattr(ClusterReader, "read", slow)
    scrapes = [
        threading.Thread(target=get, args=[answers, "/metrics/cluster"])
        for _ in range(SCRAPES)
    ]
    for scrape in scrapes:
        scrape.start()
    began.wait(20)
    assert b"Too many scrapes" in get(answers, "/metrics/cluster").body
    assert get(answers, "/readyz").content_type == "application/json"
    over.set()
    for scrape in scrapes:
        scrape.join()
    monkeypatch.setattr(ClusterReader, "read", lambda reader: [])
    assert get(answers, "/metrics/cluster").status == 200


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
