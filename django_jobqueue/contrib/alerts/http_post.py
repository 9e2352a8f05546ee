"""Posts JSON to an address of the settings: no redirects, no proxies, bounded in time
and size."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from http.client import HTTPException, HTTPMessage
from typing import IO, Final
from urllib.error import HTTPError, URLError

TIMEOUT: Final = 10.0  # seconds, of each step
USER_AGENT: Final = "django-jobqueue"


class NotSent(Exception):
    """A channel did not accept it. Its text has no address and no secret."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer like any other that is no success."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        """Go nowhere."""


_opener: Final = urllib.request.build_opener(
    urllib.request.ProxyHandler({}), _NoRedirect
)


def post(url: str, body: bytes, headers: Mapping[str, str]) -> None:
    """Post this JSON. Raises NotSent unless the answer is 2xx."""
    own = {"Content-Type": "application/json", "User-Agent": USER_AGENT}
    _request(url, body, {**own, **headers})


def get(url: str) -> None:
    """Request an address. Raises NotSent unless the answer is 2xx."""
    _request(url, None, {"User-Agent": USER_AGENT})


def _request(url: str, body: bytes | None, headers: Mapping[str, str]) -> None:
    request = urllib.request.Request(url, data=body, headers=dict(headers))
    try:
        with _opener.open(request, timeout=TIMEOUT) as answer:
            if not 200 <= answer.status < 300:
                raise NotSent(f"HTTP {answer.status}")
    except HTTPError as error:
        error.close()
        raise NotSent(f"HTTP {error.code}") from None
    except URLError as error:
        raise NotSent(reason_of(error.reason)) from None
    except (OSError, HTTPException) as error:
        raise NotSent(reason_of(error)) from None


def reason_of(error: object) -> str:
    """What went wrong, without what the error's own text may tell: addresses, secrets,
    personal data."""
    number = f" {error.errno}" if isinstance(error, OSError) and error.errno else ""
    return f"{type(error).__name__}{number}"
