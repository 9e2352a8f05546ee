"""An ASGI application with a worker beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Unpack

from django_jobqueue.embedded.beside_application import BesideApplication, Options

Event = dict[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[Any]]


class ASGIApplication:
    """Passes every connection to the application, and starts and stops the worker."""

    def __init__(self, application: Application, beside: BesideApplication) -> None:
        self.beside = beside
        self._application = application

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Serve one connection, or the lifespan of the server."""
        if scope["type"] == "lifespan":
            lifespan = Lifespan(self.beside, receive, send)
            await lifespan.serve(self._application, scope)
        else:
            self.beside.start()
            await self._application(scope, receive, send)


class Lifespan:
    """Startup and shutdown of the server. If the application does not support the
    lifespan protocol, the events are answered for it."""

    def __init__(self, beside: BesideApplication, receive: Receive, send: Send) -> None:
        self._beside = beside
        self._receive = receive
        self._send = send
        self._question = ""  # an event without an answer yet
        self._knows_lifespan = False
        self._is_over = False

    async def serve(self, application: Application, scope: Event) -> None:
        """Serve until the server shuts down."""
        try:
            await application(scope, self._hear, self._reply)
        except Exception:
            if self._knows_lifespan or self._is_over:
                raise
        while not self._is_over:
            question = self._question or (await self._hear())["type"]
            await self._reply({"type": f"{question}.complete"})
        await asyncio.to_thread(self._beside.stop)

    async def _hear(self) -> Event:
        event = await self._receive()
        self._question = event["type"]
        if self._question == "lifespan.startup":
            await self._start()
        elif self._question == "lifespan.shutdown":
            await asyncio.to_thread(self._beside.stop)
        return event

    async def _reply(self, event: Event) -> None:
        self._knows_lifespan = True
        self._question = ""
        self._is_over = event["type"] != "lifespan.startup.complete"
        await self._send(event)

    async def _start(self) -> None:
        try:
            self._beside.start()
        except Exception as error:
            await self._reply(
                {"type": "lifespan.startup.failed", "message": str(error)}
            )
            raise


def asgi(application: Application, **options: Unpack[Options]) -> ASGIApplication:
    """The application with a worker beside it, in each process that serves it::

        application = asgi(get_asgi_application(), threads=2)

    The worker starts with the server, or with the first request if the server sends no
    lifespan events, and stops with the server. The options are those of
    ``django_jobqueue.worker()``. ``JOBQUEUE["EMBEDDED"] = False`` turns the worker off.
    """
    return ASGIApplication(application, BesideApplication(options))
