"""The INSERT of jobs: one text for all, whose values stand in parameters or in rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django_jobqueue.store.columns import JOB_COLUMNS


class ValuePlaces:
    """Where the values of a job stand in an INSERT: ``{given.queue}``."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __getattr__(self, name: str) -> str:
        return self._place.format(name)


PARAMETERS: Final = ValuePlaces("%({})s")
# The type's row decides these, the same for each of many jobs.
OF_TYPE: Final = (
    "queue",
    "priority",
    "run_after",
    "expires_at",
    "expires_in",
    "followers",
    "created_at",
)

# A follower that has no row would never come, so that is an error now.
_FOLLOWERS_ARE_THERE: Final = """
   AND ({given.follower_types}::text[] IS NULL
        OR {given.follower_types} <@ ARRAY (SELECT name::text FROM jobqueue_jobtype
                                         WHERE name = ANY ({given.follower_types})))
"""
FOLLOWERS_ARE_THERE: Final = _FOLLOWERS_ARE_THERE.format(given=PARAMETERS)

# A moment that is past is now: jobs go before others for as long as they have waited.
DUE: Final = """greatest({given.run_after}::timestamptz,
                                clock_timestamp() + {given.delay}::interval)"""
# It reads the job type's row, because operators override the priority there, and
# because a missing row must be an error now and not at commit.
_ROWS: Final = """
  FROM jobqueue_jobtype AS type,{source}
       LATERAL (SELECT {due}) AS due (at)
 WHERE {condition}type.name = {given.job_type} {followers_are_there}
"""
_RETURNING: Final = """
RETURNING queue, priority, run_after, expires_at, created_at,
          followers IS NOT NULL, {notified}
"""
NEW: Final = ""
UNLESS_THERE: Final = "ON CONFLICT DO NOTHING"  # the id, or the unique key


def insert_jobs(values: Mapping[str, str], *, rows: str = "", then: str = "") -> str:
    """The INSERT of jobs: the SQL of each column's value, and the ``rows`` that these
    are read from, FROM and all; without them it is one job. ``then`` follows."""
    given = ",\n       ".join(values.values())
    values_of_rows = f"SELECT {given}\n{rows}" if rows else f"VALUES ({given})"
    return f"""
INSERT INTO jobqueue_queuedjob (
       {", ".join(values)})
{values_of_rows}
{then}
"""


def values_of(
    given: ValuePlaces = PARAMETERS, *, has_more: bool = True
) -> dict[str, str]:
    """The SQL of each value that an enqueue writes, by column; or without what few jobs
    have."""
    return {
        column.name: column.enqueued.format(given=given)
        for column in JOB_COLUMNS
        if column.enqueued and (has_more or not column.is_rare)
    }


def insert_of(
    given: ValuePlaces = PARAMETERS,
    *,
    has_more: bool = True,
    source: str = "",
    condition: str = "",
    due: str = DUE,
    conflict: str = "{conflict}",
    notified: str = "{notified}",
    **instead: str,
) -> str:
    """The INSERT of jobs whose values stand there, with a further ``source`` of rows, a
    further ``condition``, and when they are ``due``; or without what few jobs have.
    What is not given yet is a slot of the text."""
    are_there = _FOLLOWERS_ARE_THERE.format(given=given)
    rows = _ROWS.format(
        given=given,
        source=source,
        condition=condition,
        due=due.format(given=given),
        followers_are_there=are_there if has_more else "",
    )
    if not has_more:
        instead["followers"] = "type.followers"
    return insert_jobs(
        {**values_of(given, has_more=has_more), **instead},
        rows=rows.strip("\n"),
        then=conflict + _RETURNING.format(notified=notified).rstrip("\n"),
    )


INSERT: Final = insert_of()
# For a job that has nothing of what few have, a shorter one: 0.50 ms instead of 0.53.
INSERT_FEW: Final = insert_of(has_more=False)
