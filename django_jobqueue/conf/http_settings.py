"""The settings of the HTTP API."""

from __future__ import annotations

from django_jobqueue.conf.metrics_settings import MetricsSettings
from django_jobqueue.conf.setting_types import Bytes, Count, Flag, Names


class HttpSettings(MetricsSettings):
    """A further part of ``Conf``."""

    http_auth = Names[list[str]](
        ["django_jobqueue.http.auth.Tokens"],
        "Dotted paths of those who know the callers of the HTTP API, asked in turn: "
        "Tokens, Basic and DjangoUser of django_jobqueue.http.auth, or your own.",
    )
    http_max_body = Bytes[int](
        1_100_000,
        "Maximum size of a request's body, in bytes; a larger one is not read. As a "
        "flag or a variable also 2MB.",
        minimum=1_000,
    )
    http_require_tls = Flag[bool](
        True,
        "Whether the HTTP API refuses requests that came without TLS, as "
        "request.is_secure() says.",
    )
    http_long_polls = Count[int](
        2,
        "How many requests of a process may wait for a job at once; further ones are "
        "answered at once.",
        minimum=0,
    )
