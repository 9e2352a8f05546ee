"""A stand-in for a transaction pooler: it passes everything on but notifications."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType

NOTIFICATION = ord("A")  # NotificationResponse of the wire protocol
Change = Callable[[bytes], bytes]
HEADER = 5  # the type of a reply, and its length in four bytes


class Pooler:
    """Listens on a port of this machine, before a server with a socket or a port."""

    def __init__(self, host: str, port: str) -> None:
        self._target = (host, port)
        self._sockets: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = str(self._server.getsockname()[1])
        self.swallowed = 0

    def __enter__(self) -> Pooler:
        _in_thread(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for one in (self._server, *self._sockets):
            _end(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:  # closed: this is the end
                return
            server = _connect(*self._target)
            self._sockets += [client, server]
            _in_thread(self._ask, client, server)
            _in_thread(self._answer, server, client)

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        """Pass on what the client says, as it is."""
        _pass_on(client, server, lambda data: data)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        """Pass on whole replies of the server, but for notifications."""
        rest = b""

        def replies(data: bytes) -> bytes:
            nonlocal rest
            rest, kept = rest + data, b""
            if rest[:1] in (b"N", b"S") and len(rest) == 1:  # to a question for TLS
                rest, kept = b"", rest
            while len(rest) >= HEADER:
                end = 1 + int.from_bytes(rest[1:HEADER])
                if len(rest) < end:
                    break
                if rest[0] == NOTIFICATION:
                    self.swallowed += 1
                else:
                    kept += rest[:end]
                rest = rest[end:]
            return kept

        _pass_on(server, client, replies)


def _pass_on(source: socket.socket, target: socket.socket, change: Change) -> None:
    with contextlib.suppress(OSError):  # the other thread of this pair has ended it
        while data := source.recv(65_536):
            target.sendall(change(data))
    for one in (source, target):
        _end(one)


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it was not connected any more
        one.shutdown(socket.SHUT_RDWR)
    one.close()


def _in_thread(function: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=function, args=arguments, daemon=True).start()


def _connect(host: str, port: str) -> socket.socket:
    if not host.startswith("/"):
        return socket.create_connection((host or "localhost", int(port or 5432)))
    made = socket.socket(socket.AF_UNIX)
    made.connect(f"{host}/.s.PGSQL.{port or 5432}")
    return made
