"""Unique jobs: what makes two calls the same job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured

from django_jobqueue.registry import Declaration


def key_of_text(job_type: str, text: str) -> UUID:
    """The key of a job type's jobs with this ``unique_key``."""
    return _key([job_type, "key", text])


def key_of_data(declaration: Declaration, data: Mapping[str, Any]) -> UUID:
    """The key of a call, by the parameters that count.

    The handler's defaults stand for what the call leaves out, as they are now.
    """
    counted = {**declaration.parameters.defaults, **data}
    unique = declaration.policy.unique
    if isinstance(unique, tuple):
        counted = {name: counted[name] for name in unique if name in counted}
    return _key([declaration.name, "data", counted])


def described(unique: bool | tuple[str, ...]) -> str:
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


def _key(value: list[Any]) -> UUID:
    """The same for equal JSON, whatever the order of its keys. A default that is no
    JSON, which no call can have, counts as its class."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=_class_of)
    return UUID(bytes=sha256(text.encode()).digest()[:16])


def _class_of(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
