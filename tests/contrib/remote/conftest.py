"""An endpoint in the process of the tests, which answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.test import override_settings

from django_jobqueue import remote_job
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.handler import Handler

SECRETS = [
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
]
TYPE = "invoices.ship"
POLL = 0.01  # seconds between looks at whether it is to end


@dataclass
class Received:
    """A request that came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Its body."""
        return json.loads(self.body)


@dataclass
class Reply:
    """An answer, or what is done instead."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_for: threading.Event | None = None  # before it is sent
    breaks: bool = False  # the connection, without an answer
    length: int | None = None  # the one that is claimed


class EndpointServer:
    """Takes requests, and answers each with the next reply; the last one stays."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.replies: list[Reply] = [Reply()]
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _take(self) -> None:
                length = int(self.headers.get("content-length", 0))
                body = self.rfile.read(length)
                headers = {name.lower(): value for name, value in self.headers.items()}
                one = Received(self.command, self.path, headers, body)
                outer.received.append(one)
                several = len(outer.replies) > 1
                reply = outer.replies.pop(0) if several else outer.replies[0]
                if reply.wait_for is not None:
                    reply.wait_for.wait(20)
                self.close_connection = True
                if reply.breaks:
                    return
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                size = len(reply.body) if reply.length is None else reply.length
                self.send_header("Content-Length", str(size))
                self.send_header("Connection", "close")
                self.end_headers()
                with suppress(OSError):  # it has read enough
                    self.wfile.write(reply.body)

            do_POST = do_DELETE = do_GET = _take

            def log_message(self, *args: Any) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=[POLL], daemon=True
        )
        self._thread.start()

    def answer(self, *replies: Reply) -> None:
        """Answer so from now on."""
        self.replies = list(replies)

    def close(self) -> None:
        """End it; nobody listens there any more."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()


@pytest.fixture
def shipping() -> Iterator[EndpointServer]:
    """The endpoint ``shipping``, in the settings and for real."""
    server = EndpointServer()
    settings = {
        "SITE_URL": "https://shop.example",
        "ENDPOINTS": {
            "shipping": {
                "url": server.url,
                "secrets": SECRETS,
                "auth": ("jobs", "s3cret"),
                "read_timeout": 0.5,
            }
        },
    }
    with override_settings(JOBQUEUE=settings):
        yield server
    server.close()


@pytest.fixture
def declare(shipping: EndpointServer) -> Iterator[Callable[..., Handler[..., Any]]]:
    """Declares job types of that endpoint, which are gone at the end."""
    names: list[str] = []

    def make(name: str = TYPE, **options: Any) -> Handler[..., Any]:
        names.append(name)
        return remote_job(name, **{"endpoint": "shipping", **options})

    yield make
    for name in names:
        registry.remove(name)
