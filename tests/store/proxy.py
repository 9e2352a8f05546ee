"""A proxy to the database that can fall silent without closing a connection."""

from __future__ import annotations

import selectors
import socket
import threading
from types import TracebackType


class Proxy:
    """Listens on a port of this machine and passes bytes on, until it is silenced.

    What is sent to a silent proxy is accepted and goes nowhere, as in a network that
    was cut behind a proxy or a load balancer: TCP itself sees nothing wrong.
    """

    def __init__(self, host: str, port: str) -> None:
        self._host = host  # of the database
        self._port = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._silent = False
        self._closing = False
        self._other: dict[socket.socket, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._closing = True
        self._thread.join()
        for one in (self._server, *self._other):
            one.close()
        self._selector.close()

    def fall_silent(self) -> None:
        """Pass on nothing of what the present connections send."""
        self._silent = True

    def speak_again(self) -> None:
        """Pass on what new connections send."""
        self._silent = False

    def _run(self) -> None:
        while not self._closing:
            for key, _ in self._selector.select(0.02):
                if key.fileobj is self._server:
                    self._accept()
                else:
                    self._pass_on(key.fileobj)  # type: ignore[arg-type]

    def _accept(self) -> None:
        client, _ = self._server.accept()
        server = _connect(self._host, self._port)
        self._other |= {client: server, server: client}
        self._selector.register(client, selectors.EVENT_READ)
        self._selector.register(server, selectors.EVENT_READ)

    def _pass_on(self, source: socket.socket) -> None:
        target = self._other.get(source)
        if target is None:  # closed a moment ago, by the other side
            return
        try:
            data = source.recv(65_536)
            if data and not self._silent:
                target.sendall(data)
        except OSError:
            data = b""
        if not data:
            for one in (source, target):
                self._selector.unregister(one)
                self._other.pop(one).close()


def _connect(host: str, port: str) -> socket.socket:
    """Connect to a server, by a socket in a folder or by TCP."""
    if not host.startswith("/"):
        return socket.create_connection((host or "localhost", int(port or 5432)))
    made = socket.socket(socket.AF_UNIX)
    made.connect(f"{host}/.s.PGSQL.{port or 5432}")
    return made
