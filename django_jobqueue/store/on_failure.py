"""What features add to the statements that record failures, in the same transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from django_jobqueue import rooms


class OnFailure(NamedTuple):
    """A part of a statement, ``name AS (…)``. It can read the fingerprints of failure
    groups that are new, in ``failure_group``, and back, in ``regressed``."""

    sql: str
    params: Callable[[], Mapping[str, object]]  # of each call


@cache
def composed(statement: str) -> str:
    """The statement with the parts of all installed features in its slot; asked for
    when it first runs, since by then all apps are ready."""
    return statement.format(on_failure="".join(f", {one.sql}" for one in _parts()))


def params() -> dict[str, object]:
    """What the parts need."""
    return {name: it for one in _parts() for name, it in one.params().items()}


@cache
def _parts() -> tuple[OnFailure, ...]:
    return tuple(rooms.offered("on_failure"))
