"""Builds the keys of unique jobs: two calls with one key are the same job."""

from __future__ import annotations

from hashlib import sha256
from json import dumps
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured

from django_jobqueue.domain.registry import Declaration
from django_jobqueue.domain.unique_rule import OPTIONS_OF_UNIQUE_JOBS, UniqueRule


def rule_of(declaration: Declaration) -> UniqueRule | None:
    """The rule of a handler that is declared with ``unique``; None for others. The
    handler's defaults stand for what a call leaves out, as they are now."""
    policy, defaults = declaration.policy, declaration.parameters.defaults
    if not policy.unique:
        return None
    by = policy.unique if isinstance(policy.unique, tuple) else None
    return UniqueRule(
        by=by,
        defaults={
            name: defaults[name] for name in defaults if by is None or name in by
        },
        unique_until=policy.unique_until,
        on_duplicate=policy.on_duplicate,
        debounce=policy.debounce,
        debounce_max=policy.debounce_max,
    )


class ScheduleKey(str):
    """The name of a schedule, as the ``unique_key`` of its unfinished job. No text of a
    caller comes to the same key."""


def key_of_text(job_type: str, text: str) -> UUID:
    """The key of a job type's jobs with this ``unique_key``."""
    origin = "schedule" if isinstance(text, ScheduleKey) else "key"
    whole = dumps([job_type, origin, text])
    return UUID(bytes=sha256(whole.encode()).digest()[:16])


def described(unique: bool | tuple[str, ...] | None) -> str:
    """By what jobs are unique, for people; empty if they are not."""
    if isinstance(unique, tuple):
        return ", ".join(unique)
    return "data" if unique else ""


def check(declaration: Declaration, where: str) -> None:
    """Raises ImproperlyConfigured unless the handler has the parameters that count, and
    for options that have no effect without any."""
    unique, parameters = declaration.policy.unique, declaration.parameters
    for name in OPTIONS_OF_UNIQUE_JOBS:
        if not unique and getattr(declaration.policy, name) is not None:
            raise ImproperlyConfigured(
                f"@job on {where}: {name} needs unique: the parameters by which two "
                "calls are the same, or True for all of them."
            )
    if not isinstance(unique, tuple) or parameters.open_ended:
        return
    for name in unique:
        if name not in parameters.names:
            raise ImproperlyConfigured(
                f"@job on {where}: unique names {name!r}, which is no parameter."
                f"{parameters.near(name)}"
            )
