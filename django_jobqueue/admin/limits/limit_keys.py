"""Who sees the keys of limits: they are arguments of jobs, and have one rule for all
pages and files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.http import HttpRequest

from django_jobqueue.admin.base import VIEW_DATA, may
from django_jobqueue.domain.per_key import limit_name_of
from django_jobqueue.models import JobType
from django_jobqueue.text.redaction import MASK, is_secret

_OPEN: Final = "_jobqueue_open_limits"


def sees_keys(request: HttpRequest, limit: str) -> bool:
    """Whether the user may see the keys of this limit: data of jobs, and none of them
    under a sensitive name in a job type that has the limit. Those of a limit that no
    job type has any more might be such."""
    if not may(request, VIEW_DATA):
        return False
    if not hasattr(request, _OPEN):
        setattr(request, _OPEN, _open_limits())
    known: set[str] = getattr(request, _OPEN)
    return limit in known


def shown_limit_key(request: HttpRequest, limit_key: str) -> str:
    """A ``limit_key`` of a job as this user may see it: the limit, and the key."""
    limit = limit_name_of(limit_key)
    return limit_key if sees_keys(request, limit) else f"{limit} {MASK}"


def _open_limits() -> set[str]:
    is_open: dict[str, bool] = {}
    rows = JobType._default_manager.exclude(limit_name=None)
    for limit, rule, sensitive in rows.values_list(
        "limit_name", "limit_rule", "sensitive"
    ):
        is_open[limit] = is_open.get(limit, True) and not _is_secret(rule, sensitive)
    return {limit for limit, is_it in is_open.items() if is_it}


def _is_secret(rule: Any, sensitive: Iterable[Any] | None) -> bool:
    """Whether an argument that the key is made of is sensitive."""
    names = [str(name).lower() for name in sensitive or ()]
    return any(is_secret(str(name), names) for name in (rule or {}).get("by", ()))
