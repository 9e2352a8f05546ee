"""System check of limits by key that several job types share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error

from django_jobqueue.checks.lazy_loading import register
from django_jobqueue.domain.key_limits import limit_name
from django_jobqueue.domain.registry import registry

TAG = "jobqueue"


@register(TAG)
def check_shared_limits(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """E026: job types that share a limit by key state the same number."""
    stated: dict[str, dict[str, str]] = {}
    for declaration in registry:
        name, per_key = limit_name(declaration), declaration.policy.per_key
        if name is not None and per_key is not None:
            numbers = f"{per_key.concurrency}"
            if per_key.rate is not None:
                numbers += f" and {per_key.rate}"
            if per_key.strict:
                numbers += " in strict order"
            stated.setdefault(name, {}).setdefault(numbers, declaration.name)
    for name, by_numbers in sorted(stated.items()):
        if len(by_numbers) > 1:
            by_type = ", ".join(f"{of} of {who}" for of, who in by_numbers.items())
            yield Error(
                f"The limit by key {name!r} has different numbers: {by_type}.",
                hint="State one number in each job type, or give the limits different "
                "names.",
                id="jobqueue.E026",
            )
