"""A small HTTP server for scrapes and probes: GET and HEAD, bounded in all that it
takes."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, NamedTuple

logger = logging.getLogger("django_jobqueue.metrics")

CONNECTIONS: Final = 64  # at once; the next one ends the oldest
SECONDS: Final = 5.0  # of one connection, from its first byte to its last
LONGEST_HEAD: Final = 8_192  # bytes of the request line and the headers
BACKLOG: Final = 32  # connections that wait for their turn


class Request(NamedTuple):
    """A client's request."""

    method: str
    path: str  # without the query
    headers: Mapping[str, str]  # by names in small letters


@dataclass(frozen=True, slots=True)
class Response:
    """An answer; the server adds the headers that all have."""

    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


def text(status: HTTPStatus, sentence: str) -> Response:
    """A sentence as an answer."""
    return Response(status, sentence.encode() + b"\n")


class BadRequest(Exception):
    """No HTTP, or too much of it; has the answer."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status.phrase)
        self.response = response


def listen(host: str, port: int) -> socket.socket:
    """A socket on this address; port 0 is any free one. Raises OSError."""
    *parameters, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listening = socket.socket(*parameters)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening


def url_of(listening: socket.socket) -> str:
    """Its address for people: ``http://127.0.0.1:9464``."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class ScrapeServer:
    """Answers each connection once, in a thread of its own."""

    def __init__(
        self, listening: socket.socket, answer: Callable[[Request], Response]
    ) -> None:
        self._listening = listening
        self._answer = answer
        self._open: dict[socket.socket, None] = {}  # the oldest first
        self._changing = threading.Lock()

    @property
    def is_idle(self) -> bool:
        """True if no connection is open."""
        return not self._open

    def accept(self) -> None:
        """Serve the connection that waits, if it still does.

        Clients that say nothing, or read nothing, must not keep a probe from its
        answer: whoever comes is served, and the oldest goes.
        """
        try:
            connection, _ = self._listening.accept()
        except OSError:
            return
        with self._changing:
            self._open[connection] = None
            oldest = next(iter(self._open)) if len(self._open) > CONNECTIONS else None
            if oldest is not None:
                del self._open[oldest]
        if oldest is not None:
            with contextlib.suppress(OSError):  # it has just ended
                oldest.shutdown(socket.SHUT_RDWR)
        try:
            threading.Thread(
                target=self._serve, args=[connection], name="scrape", daemon=True
            ).start()
        except RuntimeError:  # there is no room for a thread
            connection.close()
            self._forget(connection)

    def _forget(self, connection: socket.socket) -> None:
        with self._changing:
            self._open.pop(connection, None)

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, contextlib.suppress(OSError):
                self._exchange(connection, time.monotonic() + SECONDS)
        finally:
            self._forget(connection)

    def _exchange(self, connection: socket.socket, deadline: float) -> None:
        is_head = False
        try:
            request = parse(read_head(connection, deadline))
            is_head = request.method == "HEAD"
            response = self._respond(request)
        except BadRequest as error:
            response = error.response
        connection.settimeout(max(0.01, deadline - time.monotonic()))
        connection.sendall(encode(response, is_head=is_head))
        connection.shutdown(socket.SHUT_WR)

    def _respond(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            words = text(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET and HEAD are served.")
            return Response(words.status, words.body, headers={"Allow": "GET, HEAD"})
        try:
            return self._answer(request)
        except Exception:
            logger.exception("%s cannot be answered", request.path)
            return text(HTTPStatus.INTERNAL_SERVER_ERROR, "The log says why.")


def read_head(connection: socket.socket, deadline: float) -> bytes:
    """The request line and the headers. Raises BadRequest and OSError."""
    head = b""
    while b"\r\n\r\n" not in head:
        connection.settimeout(max(0.01, deadline - time.monotonic()))
        received = connection.recv(LONGEST_HEAD)
        head += received
        if len(head) > LONGEST_HEAD:
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise BadRequest(text(status, f"At most {LONGEST_HEAD} bytes, please."))
        if not received:
            raise ConnectionError("it ended before its headers did")
    return head.partition(b"\r\n\r\n")[0]


def parse(head: bytes) -> Request:
    """The request with these headers. Raises BadRequest."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadRequest(text(HTTPStatus.BAD_REQUEST, "This is no request."))
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return Request(words[0], words[1].partition("?")[0], headers)


def encode(response: Response, *, is_head: bool) -> bytes:
    """The answer as it is sent."""
    headers = {
        "Content-Type": response.content_type,
        "Content-Length": str(len(response.body)),
        "Cache-Control": "no-store",
        "Connection": "close",
        **response.headers,
    }
    lines = [f"HTTP/1.1 {response.status.value} {response.status.phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
    return head if is_head else head + response.body
