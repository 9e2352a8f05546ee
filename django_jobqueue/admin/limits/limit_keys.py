"""Who sees the keys of limits: they are arguments of jobs, and have one rule for all
pages and files."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest

from django_jobqueue.admin.base import VIEW_DATA, may
from django_jobqueue.domain.per_key import hidden_key, limit_name_of
from django_jobqueue.stats.open_limits import open_limits

_OPEN: Final = "_jobqueue_open_limits"


def sees_keys(request: HttpRequest, limit: str) -> bool:
    """True if the user may see the keys of this limit: data of jobs, and none of them
    sensitive."""
    if not may(request, VIEW_DATA):
        return False
    if not hasattr(request, _OPEN):
        setattr(request, _OPEN, open_limits())
    known: set[str] = getattr(request, _OPEN)
    return limit in known


def shown_limit_key(request: HttpRequest, limit_key: str) -> str:
    """A ``limit_key`` of a job as this user may see it: the limit, and the key."""
    is_shown = sees_keys(request, limit_name_of(limit_key))
    return limit_key if is_shown else hidden_key(limit_key)
