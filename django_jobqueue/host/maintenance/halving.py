"""Statements about many jobs, of which the database may refuse some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

import psycopg


def each_it_can(
    ids: Sequence[UUID], do: Callable[[Sequence[UUID]], object]
) -> dict[UUID, psycopg.Error]:
    """Do this with as many of the jobs as the database lets; return the others, with
    what it said.

    They are halved until those that are refused stand alone. Raises StoreUnavailable.
    """
    if not ids:
        return {}
    try:
        do(ids)
    except psycopg.Error as error:
        if len(ids) == 1:
            return {ids[0]: error}
    else:
        return {}
    half = len(ids) // 2
    return {**each_it_can(ids[:half], do), **each_it_can(ids[half:], do)}


def one_line(error: psycopg.Error) -> str:
    """What the database said, for a line of the log."""
    return " ".join(str(error).split())[:300]
