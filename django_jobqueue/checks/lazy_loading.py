"""Checks that register here are loaded when Django first runs them: a web process never
does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from django.core.checks import CheckMessage

Check = TypeVar("Check", bound=Callable[..., Iterable[CheckMessage] | None])

_CHECKS: Final[dict[tuple[str, bool], list[Callable[..., Any]]]] = {}


def register(tag: str, *, deploy: bool = False) -> Callable[[Check], Check]:
    """Like ``register`` of ``django.core.checks``, with one tag."""

    def add(check: Check) -> Check:
        _CHECKS.setdefault((tag, deploy), []).append(check)
        return check

    return add


def run(tag: str, deploy: bool, **kwargs: Any) -> list[CheckMessage]:
    """The messages of all checks that registered so. ``apps.py`` registers this with
    Django, once for each tag and each kind of run."""
    checks = _CHECKS.get((tag, deploy), [])
    return [message for check in checks for message in check(**kwargs) or ()]
