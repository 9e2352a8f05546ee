"""System checks of the schedules that the code declares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Warning

from django_jobqueue.checks.lazy_loading import register
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedules import schedules

TAG = "jobqueue"


@register(TAG)
def check_schedules_are_called(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """E025: ``at(…)`` was called with the arguments of the job, if only with none."""
    for name in sorted(schedules.without_call):
        yield Error(
            f"The schedule {name!r} was not called with its job's arguments, so it "
            "does not exist.",
            hint="Call the result of at(): .at(…)(), or .at(…)(arguments).",
            id="jobqueue.E025",
        )


@register(TAG)
def check_options_of_schedules(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """W014: the options of schedules and of their jobs go together."""
    for schedule in schedules:
        declaration = registry.get(schedule.job_type)
        if declaration is None:
            continue
        expires_in = declaration.policy.expires_in
        if (own := schedule.options.get("expires_in")) is not None:
            expires_in = timedelta(seconds=own)
        if expires_in is not None and expires_in < schedule.jitter:
            yield Warning(
                f"Jobs of the schedule {schedule.name!r} are spread over more time "
                f"({schedule.jitter}) than they may wait ({expires_in}).",
                hint="Make expires_in longer than jitter, or remove it.",
                id="jobqueue.W014",
            )
