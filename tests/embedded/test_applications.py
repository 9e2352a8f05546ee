"""Web applications with a worker beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest
from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application
from django.core.exceptions import ImproperlyConfigured
from django.core.wsgi import get_wsgi_application
from django.db import connections
from django.test import override_settings
from django.utils.autoreload import DJANGO_AUTORELOAD_ENV

from django_jobqueue import embedded
from django_jobqueue.embedded.asgi_application import ASGIApplication
from django_jobqueue.embedded.wsgi_application import WSGIApplication
from django_jobqueue.models import Worker
from tests.sample import jobs
from tests.support.rows import archived
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)

Made = ASGIApplication | WSGIApplication


@pytest.fixture
def made() -> Iterator[list[Made]]:
    found: list[Made] = []
    yield found
    for application in found:
        application.beside.worker.stop(0)
    connections.close_all()


def get(application: WSGIApplication, path: str = "/nowhere") -> str:
    """Send a request; return the status."""
    environ: dict[str, Any] = {}
    setup_testing_defaults(environ)
    said: list[str] = []
    environ |= {"PATH_INFO": path, "HTTP_HOST": "testserver"}
    response = application(environ, lambda status, headers: said.append(status))
    for _ in response:
        pass
    response.close()  # type: ignore[attr-defined]
    return said[0]


def talk(
    application: Any,
    scope: dict[str, Any],
    talking: Callable[[ApplicationCommunicator], Coroutine[Any, Any, None]],
) -> None:
    async def serve() -> None:
        communicator = ApplicationCommunicator(application, scope)
        await talking(communicator)
        await communicator.wait(30)

    asyncio.run(serve())


def lifespan(application: Any, *words: str) -> list[tuple[Any, bool]]:
    """Tell it of these; returns what it answered, and whether its worker ran then."""
    answers: list[tuple[Any, bool]] = []

    async def talking(server: ApplicationCommunicator) -> None:
        for word in words:
            await server.send_input({"type": f"lifespan.{word}"})
            answers.append((await server.receive_output(20), is_running(application)))

    talk(application, {"type": "lifespan"}, talking)
    return answers


def is_running(application: Made) -> bool:
    return application.beside.worker.is_running


def test_a_worker_starts_with_the_first_request_and_only_once(made: list[Made]) -> None:
    application = embedded.wsgi(get_wsgi_application(), threads=2)
    made.append(application)
    assert not is_running(application)
    assert get(application).startswith("404")
    assert get(application).startswith("404")
    jobs.add.enqueue(1)
    eventually(lambda: archived())
    (row,) = Worker.objects.all()
    assert (row.threads, row.state) == (2, "running")
    application.beside.worker.stop()
    get(application)
    assert not is_running(application)  # it was stopped on purpose


def test_settings_switch_it_off_and_a_reload_is_not_kept_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for settings in ({"EMBEDDED": False}, {"MODE": "immediate"}):
        with override_settings(JOBQUEUE=settings):
            wsgi = embedded.wsgi(get_wsgi_application())
            get(wsgi)
            assert not is_running(wsgi), settings
    monkeypatch.setenv(DJANGO_AUTORELOAD_ENV, "true")
    assert embedded.wsgi(get_wsgi_application(), grace=30).beside.worker.grace == 2.0


def test_it_lives_as_long_as_the_server(made: list[Made]) -> None:
    """Django's own application knows no lifespan; one that does is asked itself."""
    seen: list[tuple[str, bool]] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        for word in ("startup", "shutdown"):
            event = await receive()
            seen.append((event["type"], is_running(own)))
            await send({"type": f"lifespan.{word}.complete", "by": "inner"})

    django, own = embedded.asgi(get_asgi_application(), threads=3), embedded.asgi(inner)
    made += [django, own]
    assert lifespan(django, "startup", "shutdown") == [
        ({"type": "lifespan.startup.complete"}, True),
        ({"type": "lifespan.shutdown.complete"}, False),
    ]
    told = lifespan(own, "startup", "shutdown")
    assert [answer["by"] for answer, _ in told] == ["inner"] * 2
    assert seen == [("lifespan.startup", True), ("lifespan.shutdown", False)]


def test_a_startup_of_the_application_that_fails_is_told_to_the_server(
    made: list[Made],
) -> None:
    async def inner(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no luck"})

    application = embedded.asgi(inner)
    made.append(application)
    ((told, _),) = lifespan(application, "startup")
    assert told["message"] == "no luck"
    assert not is_running(application)


def test_a_worker_that_cannot_start_is_a_startup_that_fails(lite: None) -> None:
    async def talking(server: ApplicationCommunicator) -> None:
        await server.send_input({"type": "lifespan.startup"})
        told = await server.receive_output(20)
        assert told["type"] == "lifespan.startup.failed"
        assert "'lite' is sqlite" in told["message"]

    with pytest.raises(ImproperlyConfigured):
        talk(embedded.asgi(get_asgi_application()), {"type": "lifespan"}, talking)


def test_without_a_lifespan_it_starts_with_the_first_request(made: list[Made]) -> None:
    application = embedded.asgi(get_asgi_application())
    made.append(application)
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/nowhere",
        "headers": [(b"host", b"testserver")],
        "query_string": b"",
    }

    async def talking(server: ApplicationCommunicator) -> None:
        await server.send_input({"type": "http.request", "body": b""})
        assert (await server.receive_output(20))["status"] == 404
        await server.receive_output(20)

    talk(application, scope, talking)
    assert is_running(application)
    jobs.add.enqueue(1)
    eventually(lambda: archived())
