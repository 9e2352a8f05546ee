"""The settings of the HTTP API."""

from __future__ import annotations

import re
from typing import Any, Final

from django_jobqueue.conf.metrics_settings import MetricsSettings
from django_jobqueue.conf.setting_types import Bytes, Count, Flag, Names, Setting

RATE: Final = re.compile(r"[1-9]\d{0,8}/[smh]", re.ASCII)
SECONDS_OF: Final = {"s": 1, "m": 60, "h": 3_600}


class RequestRate(Setting[tuple[int, int] | None]):
    """So many requests in so many seconds."""

    described_as = "a rate such as 1000/s, 600/m or 5000/h"
    types = (str,)

    def convert(self, value: Any) -> tuple[int, int] | None:
        if value is None:
            return None
        number, unit = value.split("/")
        return int(number), SECONDS_OF[unit]

    def accepts(self, value: object) -> bool:
        return isinstance(value, str) and bool(RATE.fullmatch(value))


class HttpSettings(MetricsSettings):
    """A further part of ``Conf``."""

    http_auth = Names[list[str]](
        ["django_jobqueue.contrib.http.auth.Tokens"],
        "Dotted paths of the classes that identify callers of the HTTP API, tried in "
        "turn: Tokens, Basic and DjangoUser of django_jobqueue.contrib.http.auth, or "
        "your own.",
    )
    http_max_body = Bytes[int](
        1_100_000,
        "Maximum size of a request's body, in bytes; a larger one is not read. As a "
        "flag or a variable also 2MB.",
        minimum=1_000,
    )
    http_require_tls = Flag[bool](
        True,
        "Whether the HTTP API refuses requests without TLS, according to "
        "request.is_secure().",
    )
    http_throttle = RequestRate(
        None,
        "How many requests one caller of the HTTP API may send, such as 1000/s or "
        "600/m, counted in Django's cache; None is unlimited.",
        optional=True,
    )
    http_long_polls = Count[int](
        2,
        "How many requests of a process may wait for a job at once; further ones are "
        "answered at once.",
        minimum=0,
    )
