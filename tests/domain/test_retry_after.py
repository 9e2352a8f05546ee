"""``Retry-After``: read from whatever an HTTP client has, and never trusted too far."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.message import Message
from typing import Any
from urllib.error import HTTPError

import pytest
from django.utils.http import http_date
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue import Retry, retries
from django_jobqueue.retries import LONGEST, respect_retry_after, retry_after
from tests.support.tables import differing

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


class Headers(Mapping[str, str]):
    """Headers that are found in any case, as those of requests and httpx."""

    def __init__(self, **values: str) -> None:
        self.values_ = values

    def __getitem__(self, name: str) -> str:
        return self.values_[name.lower().replace("-", "_")]

    def __iter__(self) -> Any:
        return (name.replace("_", "-").title() for name in self.values_)

    def __len__(self) -> int:
        return len(self.values_)


class Response:
    """A response; that of an error is false, as with requests."""

    def __init__(self, headers: Any) -> None:
        self.headers = headers

    def __bool__(self) -> bool:
        return False


class WithResponse(Exception):
    """As HTTPError of requests, and HTTPStatusError of httpx."""

    def __init__(self, response: Any) -> None:
        self.response = response


class WithHeaders(Exception):
    """As ClientResponseError of aiohttp."""

    def __init__(self, headers: Any) -> None:
        self.headers = headers


SOURCES: list[Any] = [
    *("60", " 60 ", "60.0", 60, 60.0, MINUTE),
    {"Retry-After": "60"},
    {"RETRY-AFTER": "60", "Date": "x"},
    {b"retry-after": b"5", "retry-after": "60"},
    Headers(retry_after="60"),
    Response(Headers(retry_after="60")),
    Response({"retry-after": 60}),
    WithResponse(Response(Headers(retry_after="60"))),
    WithHeaders({"Retry-After": "60"}),
]
NONSENSE: list[Any] = [
    *(None, "", "soon", "-5", "1e9", "٣", "5 5", "9" * 400, b"60"),
    "Mon, 99 Foo 2026 00:00:00 GMT",
    *(-1, True, math.nan, timedelta(seconds=-1), object(), ["60"], ValueError("60")),
    *({}, {"Retry-After": None}, {"Retry-After": ["60"]}),
    {"ResponseMetadata": {"HTTPHeaders": {"retry-after": "60"}}},
    *(Response(None), Response("60"), WithResponse(None), WithResponse("60")),
    WithHeaders(None),
]


def test_the_wait_is_found_wherever_a_client_keeps_it() -> None:
    assert differing([(source, MINUTE) for source in SOURCES], retry_after) == []
    headers = Message()
    headers["retry-after"] = "60"
    url = "https://example.com"
    with HTTPError(url, 503, "busy", headers, io.BytesIO()) as error:  # of urllib
        assert retry_after(error) == MINUTE
    assert differing([(source, None) for source in NONSENSE], retry_after) == []
    assert Retry(after=retry_after("soon")).after is None


def test_the_errors_of_requests_and_httpx_have_it() -> None:
    requests = pytest.importorskip("requests", reason="needs requests")
    httpx = pytest.importorskip("httpx", reason="needs httpx")
    busy = requests.Response()
    busy.status_code, busy.headers["retry-after"] = 503, "60"
    request = httpx.Request("GET", "https://example.com")
    also = httpx.Response(429, headers={"Retry-After": "60"}, request=request)
    for response, error in ((busy, requests.HTTPError), (also, httpx.HTTPStatusError)):
        with pytest.raises(error) as caught:
            response.raise_for_status()
        assert retry_after(caught.value) == retry_after(response) == MINUTE
    for error in (requests.ConnectionError("no answer"), httpx.ConnectError("no")):
        assert retry_after(error) is None


def test_a_date_is_counted_from_now_and_a_wait_has_a_maximum() -> None:
    def wait(seconds: float, form: Any = "{:%a, %d %b %Y %H:%M:%S GMT}".format) -> Any:
        found = retry_after(form(datetime.now(UTC) + timedelta(seconds=seconds)))
        assert found is not None
        return found.total_seconds()

    for form in (
        lambda moment: http_date(moment.timestamp()),
        "{:%a %b %d %H:%M:%S %Y}".format,  # of asctime
        "{:%A, %d-%b-%y %H:%M:%S} GMT".format,  # of RFC 850
    ):
        assert 80 <= wait(90, form) <= 90
        assert wait(-90, form) == 0
    assert (wait(-(10**8)), wait(10**9)) == (0, 86_400)
    longest: tuple[Any, ...] = ("86401", 1e300, math.inf, 10**400, timedelta.max)
    for value in longest:
        assert retry_after(value) == DAY
        assert retry_after(value, cap=60) == MINUTE


@given(st.text() | st.integers() | st.floats() | st.binary() | st.timedeltas())
def test_any_value_is_a_wait_within_bounds_or_none(value: Any) -> None:
    for source in (value, {"Retry-After": value}, WithHeaders({"Retry-After": value})):
        wait = retry_after(source, cap=LONGEST)
        assert wait is None or timedelta(0) <= wait <= LONGEST


def test_a_backoff_waits_a_little_longer_and_never_less() -> None:
    busy = WithResponse(Response({"Retry-After": "100"}))
    waits = {respect_retry_after(1, busy, None) for _ in range(50)}
    assert len(waits) > 10
    assert all(wait and 100 <= wait.total_seconds() <= 110 for wait in waits)
    assert respect_retry_after(1, busy, None, jitter=False) == timedelta(seconds=100)
    capped = retries.partial(respect_retry_after, cap=60)
    assert retries.function_problem(capped) is None
    assert retries.wait_after(capped, 1, busy, None) == MINUTE
    assert respect_retry_after(1, ValueError(), None) is None
