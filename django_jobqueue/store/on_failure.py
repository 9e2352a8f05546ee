"""Parts of the statements that record failures, and what features add to these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, NamedTuple

from django_jobqueue import rooms

# The failure group of a failure in `{failures}` was resolved, and it is not excused by
# its release. The groups are found by their keys, whatever the planner knows of them.
REGRESSED: Final = """regressed AS (
  UPDATE jobqueue_failuregroup AS resolved
     SET state = 'open', regressed_at = statement_timestamp(),
         last_seen = statement_timestamp()
    FROM {failures}
   WHERE resolved.fingerprint = ANY (ARRAY (SELECT {fingerprint} FROM {failures}))
     AND resolved.fingerprint = {failures}.{fingerprint}
     AND resolved.state = 'resolved'
     AND NOT resolved.excused @> to_jsonb({release})
  RETURNING resolved.fingerprint
)"""


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
    """The arguments of the parts."""
    return {name: it for one in _parts() for name, it in one.params().items()}


@cache
def _parts() -> tuple[OnFailure, ...]:
    return tuple(rooms.offered("on_failure"))
