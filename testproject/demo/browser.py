"""A customer's browser: pages, forms and cookies over HTTP."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http.cookiejar import CookieJar
from typing import Final
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

TIMEOUT: Final = 30.0  # seconds
_TOKEN: Final = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
_PRODUCT: Final = re.compile(r'name="quantity_(\d+)"')


class Refused(Exception):
    """The shop did not answer, or did not take a form."""


class Browser:
    """Visits one shop."""

    def __init__(self, shop: str) -> None:
        self.shop = shop
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()))

    def get(self, path: str) -> str:
        """The page at this path. Raises Refused."""
        return self._open(path, None)[1]

    def submit(self, page: str, path: str, values: Mapping[str, object]) -> str:
        """Fill in the form of a page and send it; returns where that led.

        Raises Refused.
        """
        token = _TOKEN.search(self.get(page))
        if token is None:
            raise Refused(f"{page} has no form.")
        content = {"csrfmiddlewaretoken": token[1], **values}
        address, text = self._open(path, urlencode(content).encode())
        if "errorlist" in text:
            raise Refused(f"{path} found a mistake in the form.")
        return address

    def products(self) -> list[int]:
        """The keys of what can be bought."""
        return [int(key) for key in _PRODUCT.findall(self.get("/checkout/"))]

    def _open(self, path: str, body: bytes | None) -> tuple[str, str]:
        try:
            with self._opener.open(self.shop + path, body, TIMEOUT) as response:
                return response.url, response.read().decode()
        except HTTPError as error:
            with error:
                raise Refused(f"{path} answered {error.code}.") from error
        except OSError as error:
            raise Refused(f"{self.shop} does not answer: {error}") from error
