"""A customer's browser: pages, forms and cookies over HTTP."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import httpx

TIMEOUT: Final = 30.0  # seconds
_TOKEN: Final = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
_PRODUCT: Final = re.compile(r'name="quantity_(\d+)"')


class Refused(Exception):
    """The shop did not answer, or did not take a form."""


class Browser:
    """Visits one shop."""

    def __init__(self, shop: str) -> None:
        self.shop = shop
        self._client = httpx.Client(
            base_url=shop,
            follow_redirects=True,
            timeout=TIMEOUT,
            limits=httpx.Limits(
                max_keepalive_connections=0
            ),  # so none has to be closed
        )

    def get(self, path: str) -> str:
        """The page at this path. Raises Refused."""
        return self._answer("GET", path).text

    def submit(self, page: str, path: str, values: Mapping[str, object]) -> str:
        """Fill in the form of a page and send it; returns the path where that led.

        Raises Refused.
        """
        token = _TOKEN.search(self.get(page))
        if token is None:
            raise Refused(f"{page} has no form.")
        form = {"csrfmiddlewaretoken": token[1], **values}
        answer = self._answer("POST", path, data=form)
        if "errorlist" in answer.text:
            raise Refused(f"{path} found a mistake in the form.")
        return answer.url.path

    def products(self) -> list[int]:
        """The keys of what can be bought."""
        return [int(key) for key in _PRODUCT.findall(self.get("/checkout/"))]

    def _answer(self, method: str, path: str, **content: Any) -> httpx.Response:
        try:
            answer = self._client.request(method, path, **content)
        except httpx.TransportError as error:
            raise Refused(f"{self.shop} does not answer: {error}") from error
        if answer.is_error:
            raise Refused(f"{path} answered {answer.status_code}.")
        return answer
