"""Limits whose keys may be shown: they are arguments of jobs, and may be sensitive."""

from __future__ import annotations

from django_jobqueue.domain.per_key import is_of_secrets
from django_jobqueue.models import JobType


def open_limits() -> set[str]:
    """The names of the limits whose keys are made of no sensitive argument, in any job
    type that has them. Those of a limit that no job type has any more might be such."""
    is_open: dict[str, bool] = {}
    rows = JobType._default_manager.exclude(limit_name=None)
    for limit, rule, sensitive in rows.values_list(
        "limit_name", "limit_rule", "sensitive"
    ):
        name = str(limit)
        is_open[name] = is_open.get(name, True) and not is_of_secrets(rule, sensitive)
    return {limit for limit, is_it in is_open.items() if is_it}
