"""The limits by key that job types declare."""

from __future__ import annotations

from collections.abc import Iterable
from json import dumps
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from django_jobqueue.domain.registry import Declaration


def limit_name(declaration: Declaration) -> str | None:
    """The name of the limit that jobs of this type have; None if they have none."""
    per_key = declaration.policy.per_key
    return None if per_key is None else per_key.name or declaration.name


def rule_json(declaration: Declaration) -> str | None:
    """How the database makes the key of a job of this type, as JSON text. The handler's
    defaults stand for what a call leaves out, as they are now."""
    per_key, defaults = declaration.policy.per_key, declaration.parameters.defaults
    if per_key is None:
        return None
    by = per_key.parameters
    return dumps(
        {
            "name": limit_name(declaration),
            "by": by,
            "defaults": {name: defaults[name] for name in by if name in defaults},
        },
        default=str,
    )


def declared(declarations: Iterable[Declaration]) -> list[dict[str, Any]]:
    """The limits that these job types declare, as JSON, each once."""
    limits: dict[str, dict[str, Any]] = {}
    for declaration in declarations:
        per_key, name = declaration.policy.per_key, limit_name(declaration)
        if per_key is not None and name is not None:
            rate = None if per_key.rate is None else per_key.rate.text
            limits[name] = {
                "name": name,
                "concurrency": per_key.concurrency,
                "rate": rate,
                "strict": per_key.strict,
            }
    return list(limits.values())


def check(declaration: Declaration, where: str) -> None:
    """Raises ImproperlyConfigured unless the handler has the parameters that make the
    key."""
    per_key, parameters = declaration.policy.per_key, declaration.parameters
    if per_key is None or parameters.open_ended:
        return
    for name in per_key.parameters:
        if name not in parameters.names:
            raise ImproperlyConfigured(
                f"@job on {where}: per_key names {name!r}, which is no parameter."
                f"{parameters.near(name)}"
            )
