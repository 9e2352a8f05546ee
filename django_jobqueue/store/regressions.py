"""Part of the statements that record failures: reopens resolved failure groups."""

from __future__ import annotations

from typing import Final

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
