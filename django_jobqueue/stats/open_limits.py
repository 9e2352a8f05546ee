"""Which limits have keys that may be shown: they are arguments of jobs, and some of
those are sensitive."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django_jobqueue.models import JobType
from django_jobqueue.text.redaction import is_secret


def open_limits() -> set[str]:
    """The names of the limits whose keys are made of no sensitive argument, in any job
    type that has them. Those of a limit that no job type has any more might be such."""
    is_open: dict[str, bool] = {}
    rows = JobType._default_manager.exclude(limit_name=None)
    for limit, rule, sensitive in rows.values_list(
        "limit_name", "limit_rule", "sensitive"
    ):
        name = str(limit)
        is_open[name] = is_open.get(name, True) and not _is_secret(rule, sensitive)
    return {limit for limit, is_it in is_open.items() if is_it}


def _is_secret(rule: Any, sensitive: Iterable[Any] | None) -> bool:
    names = [str(name).lower() for name in sensitive or ()]
    return any(is_secret(str(name), names) for name in (rule or {}).get("by", ()))
