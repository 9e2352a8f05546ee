"""The names and times that leases may have."""

from __future__ import annotations

import math
from typing import Final, TypeGuard

from django_jobqueue.exceptions import InvalidArguments

NAME_LENGTH: Final = 200  # characters
SHORTEST: Final = 2.0  # seconds, of a lease
LONGEST: Final = 86_400.0
STANDBY: Final = "runworkers:"  # what the names of standby leases begin with


def name_problem(value: object, longest: int = NAME_LENGTH) -> str | None:
    """Why this is no name of a lease, in words that follow "name"; else None."""
    if not isinstance(value, str) or not value.strip():
        return f"must be a text that is not empty, not {value!r}."
    if len(value) > longest:
        return f"must have at most {longest} characters; {value[:20]!r}… has more."
    if not value.isprintable():
        return f"must have no control character: {value!r}."
    return None


def standby_problem(value: str) -> str | None:
    """The same for a name of ``runworkers --standby``."""
    return name_problem(value, NAME_LENGTH - len(STANDBY))


def check_name(name: object) -> None:
    """Raises InvalidArguments for what is no name of a lease."""
    if problem := name_problem(name):
        raise InvalidArguments(f"The name of a lease {problem}")


def check_lease(name: object, ttl: object, wait: object) -> None:
    """Raises InvalidArguments for what no lease can have."""
    check_name(name)
    if not _is_number(ttl) or not SHORTEST <= ttl <= LONGEST:
        raise InvalidArguments(
            f"ttl must be a number of seconds from {SHORTEST:g} to {LONGEST:,.0f}, "
            f"not {ttl!r}."
        )
    if wait is not None and (not _is_number(wait) or wait < 0):
        raise InvalidArguments(
            "wait must be a number of seconds that is not negative, or None to wait "
            f"forever, not {wait!r}."
        )


def _is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return not math.isnan(value)
