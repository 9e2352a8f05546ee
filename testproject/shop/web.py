"""HTTP with the standard library: one request, one answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.error import HTTPError
from urllib.request import Request, urlopen

TIMEOUT = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered."""

    status: int
    body: bytes
    retry_after: float | None  # seconds


def fetch(
    url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> Answer:
    """GET, or POST of ``body``; any status is an answer.

    Raises OSError if there is none.
    """
    request = Request(url, data=body, headers=dict(headers or {}))
    try:
        with urlopen(request, timeout=TIMEOUT) as response:
            return Answer(response.status, response.read(), None)
    except HTTPError as error:
        with error:
            wait = error.headers.get("Retry-After", "")
            after = float(wait) if wait.isdigit() else None
            return Answer(error.code, error.read(), after)
