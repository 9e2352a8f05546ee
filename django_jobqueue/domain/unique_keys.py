"""Builds the keys of unique jobs: two calls with one key are the same job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from json import dumps
from typing import Any, Self
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured

from django_jobqueue.domain.registry import Declaration


@dataclass(frozen=True, kw_only=True)
class UniqueRule:
    """By what the jobs of a type are unique.

    The database computes the keys (``jobqueue_unique_key``), so that an enqueue, a
    follower and plain SQL agree.
    """

    by: tuple[str, ...] | None = None  # parameters that count; None is all data
    defaults: Mapping[str, Any] = field(default_factory=dict)  # of those left out
    until: str = "finished"  # or "started"
    on_duplicate: str = "raise"  # or "return"

    @cached_property
    def json(self) -> str:
        """As the row of the job type has it. A default that is no JSON, which no call
        can have, counts as its class."""
        return dumps(
            {
                "by": self.by,
                "defaults": dict(self.defaults),
                "until": self.until,
                "on_duplicate": self.on_duplicate,
            },
            default=_class_of,
        )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read the rule that ``json`` wrote."""
        by = value["by"]
        return cls(**{**value, "by": None if by is None else tuple(by)})


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
        until=policy.unique_until,
        on_duplicate=policy.on_duplicate,
    )


def key_of_text(job_type: str, text: str) -> UUID:
    """The key of a job type's jobs with this ``unique_key``."""
    whole = dumps([job_type, "key", text])
    return UUID(bytes=sha256(whole.encode()).digest()[:16])


def described(unique: bool | tuple[str, ...] | None) -> str:
    """By what jobs are unique, for people; empty if they are not."""
    if isinstance(unique, tuple):
        return ", ".join(unique)
    return "data" if unique else ""


def check(declaration: Declaration, where: str) -> None:
    """Raises ImproperlyConfigured unless the handler has the parameters that count."""
    unique, parameters = declaration.policy.unique, declaration.parameters
    if not isinstance(unique, tuple) or parameters.open_ended:
        return
    for name in unique:
        if name not in parameters.names:
            raise ImproperlyConfigured(
                f"@job on {where}: unique names {name!r}, which is no parameter."
                f"{parameters.near(name)}"
            )


def _class_of(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
