"""Checks of the HTTP API's settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Final

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Warning
from django.utils.module_loading import import_string

from django_jobqueue.checks.lazy_loading import register
from django_jobqueue.conf import Conf, conf

TAG: Final = "jobqueue"
OURS: Final = "django_jobqueue.contrib.http.auth"
NAMES: Final = tuple(f"{OURS}.{name}" for name in ("Tokens", "Basic", "DjangoUser"))


@register(TAG)
def check_http(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """E050, W050: those who know the callers of the HTTP API can be loaded."""
    paths = list(conf.http_auth)
    if not paths:
        yield Warning(
            "JOBQUEUE['HTTP_AUTH'] is empty: the HTTP API refuses every request.",
            hint=f"Name {NAMES[0]}, or take django_jobqueue.contrib.http out of "
            "INSTALLED_APPS.",
            id="jobqueue.W050",
        )
    for path in paths:
        if path not in Conf.http_auth.default and (problem := _problem(path)):
            near = get_close_matches(path, NAMES, n=1)
            yield Error(
                f"JOBQUEUE['HTTP_AUTH'] names {path!r}, {problem}.",
                hint=f"Did you mean {near[0]!r}?" if near else Conf.http_auth.help,
                id="jobqueue.E050",
            )


@register(TAG, deploy=True)
def check_transport(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """W051: tokens are not sent in the clear where the project is deployed."""
    if conf.http_require_tls:
        return []
    return [
        Warning(
            "JOBQUEUE['HTTP_REQUIRE_TLS'] is False: anyone on the network path can "
            "read the tokens of the HTTP API.",
            hint="Leave it out where the project is deployed; behind a proxy that ends "
            "TLS set SECURE_PROXY_SSL_HEADER.",
            id="jobqueue.W051",
        )
    ]


def _problem(path: str) -> str | None:
    """Why this path names nobody who knows callers."""
    try:
        named = import_string(path)
    except (ImportError, ValueError) as error:
        return f"which cannot be loaded: {error}"
    if callable(getattr(named, "authenticate", None)):
        return None
    return "which has no method authenticate(request)"
