"""The names that leases may have."""

from __future__ import annotations

from typing import Final

NAME_LENGTH: Final = 200  # characters
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
