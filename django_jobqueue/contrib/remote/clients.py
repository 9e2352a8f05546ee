"""HTTP clients of endpoints: one for each endpoint and event loop."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from django_jobqueue.conf import conf
from django_jobqueue.conf.endpoints import Endpoint
from django_jobqueue.exceptions import RemoteExtraMissing

if TYPE_CHECKING:
    import httpx

EXTRA: Final = "httpx"
# Servers close connections that rest for a few seconds. A request that meets that is
# lost without anybody knowing, so we close them first.
KEEP_FOR: Final = 1.0  # seconds
IDLE_CONNECTIONS: Final = 100

_Clients = dict[Endpoint, "tuple[httpx.AsyncClient, AsyncGenerator[None]]"]
_clients: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Clients]] = (
    WeakKeyDictionary()
)


def is_installed() -> bool:
    """True if the extra is installed."""
    return find_spec(EXTRA) is not None


def load() -> None:
    """Import what clients need, if there are endpoints. It takes so long that an event
    loop which did it would give its jobs back meanwhile; so processes fork after it."""
    if conf.endpoints and is_installed():
        _httpx()


async def client_of(endpoint: Endpoint) -> httpx.AsyncClient:
    """The client of this endpoint in this event loop. Raises RemoteExtraMissing."""
    of_loop = _clients.setdefault(asyncio.get_running_loop(), {})
    if endpoint not in of_loop:
        client: httpx.AsyncClient = _httpx().AsyncClient(**_options(endpoint))
        closing = _close_with_loop(client)
        await anext(closing)
        of_loop[endpoint] = (client, closing)
    return of_loop[endpoint][0]


def sync_client(endpoint: Endpoint) -> httpx.Client:
    """A new client for sync code. Raises RemoteExtraMissing."""
    client: httpx.Client = _httpx().Client(**_options(endpoint))
    return client


def _httpx() -> Any:
    if not is_installed():
        raise RemoteExtraMissing
    import httpx

    return httpx


def _options(endpoint: Endpoint) -> dict[str, Any]:
    """No redirects, and nothing of the environment: a request goes to the address in
    the settings, or nowhere."""
    httpx = _httpx()
    return {
        "auth": endpoint.auth,
        "verify": _trusted() if endpoint.url.startswith("https:") else False,
        "timeout": httpx.Timeout(
            endpoint.read_timeout, connect=endpoint.connect_timeout
        ),
        "limits": httpx.Limits(
            max_keepalive_connections=IDLE_CONNECTIONS, keepalive_expiry=KEEP_FOR
        ),
        "follow_redirects": False,
        "trust_env": False,
    }


@cache
def _trusted() -> ssl.SSLContext:
    """The certificates that this machine trusts, where those of a company are, and
    those of httpx, since small images have none."""
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


async def _close_with_loop(client: httpx.AsyncClient) -> AsyncGenerator[None]:
    """Whoever ends an event loop closes its generators, and so the client."""
    async with client:
        yield
