"""Who may ask: a token, a network, or a user with the permission."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from typing import Any, Final

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from django_jobqueue.conf import conf

PERMISSION: Final = "jobqueue.view_overview"
BEARER: Final = "bearer"  # the scheme of the header Authorization, in small letters
PROXIED: Final = ("Forwarded", "X-Forwarded-For", "X-Real-IP")  # headers of proxies

View = Callable[[HttpRequest], HttpResponse]


def for_monitoring(view: View) -> View:
    """A view that only answers GET and HEAD of those who may; nobody keeps its answer.

    Others are answered with 403, also where everybody else has to log in.
    """

    @wraps(view)
    def answer(request: HttpRequest) -> HttpResponse:
        if may_ask(request):
            return view(request)
        return text(
            HTTPStatus.FORBIDDEN,
            "This needs a token of METRICS_TOKENS, an address in METRICS_ALLOW, or the "
            f"permission {PERMISSION}.",
        )

    return login_not_required(require_safe(never_cache(answer)))


def may_ask(request: HttpRequest) -> bool:
    """True if this request may read metrics. Only the permission needs the database."""
    return _has_token(request) or _is_allowed(request) or _has_permission(request)


def text(status: HTTPStatus, sentence: str) -> HttpResponse:
    """A sentence as an answer."""
    plain = "text/plain; charset=utf-8"
    return HttpResponse(f"{sentence}\n", status=status, content_type=plain)


def _has_token(request: HttpRequest) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != BEARER:
        return False
    # All are compared, so that the time says nothing.
    equal = [constant_time_compare(given.strip(), one) for one in conf.metrics_tokens]
    return any(equal)


def _is_allowed(request: HttpRequest) -> bool:
    """True if the client's address is in METRICS_ALLOW. What a proxy brings has the
    proxy's address, whoever sent it, so it is not."""
    if not conf.metrics_allow or any(name in request.headers for name in PROXIED):
        return False
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:  # a socket of UNIX has none
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return any(address in network for network in conf.metrics_allow)


def _has_permission(request: HttpRequest) -> bool:
    user: Any = getattr(request, "user", None)  # without the middleware there is none
    return user is not None and bool(user.has_perm(PERMISSION))
