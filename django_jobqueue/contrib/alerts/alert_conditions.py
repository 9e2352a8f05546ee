"""Alerts of conditions: fires, repeats and resolves them, each once in the cluster."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from django_jobqueue.store.connection import Database

# Of a condition there is one firing alert at most: a constraint says so, whatever two
# processes believe about the lease.
FIRE: Final = """
WITH held AS MATERIALIZED (
  SELECT held.*
    FROM jsonb_to_recordset(%(held)s::jsonb)
         AS held (condition text, subject text, text text, is_confirmed boolean)
), seen AS (
  UPDATE jobqueue_alerts_alert AS alert
     SET text = held.text, last_seen = clock_timestamp(),
         pending = CASE WHEN alert.pending = '' AND alert.announced_at
                             < clock_timestamp() - interval '24 hours'
                        THEN 'repeated' ELSE alert.pending END
    FROM held
   WHERE alert.state = 'firing' AND alert.condition = held.condition
     AND alert.subject = held.subject
)
INSERT INTO jobqueue_alerts_alert (condition, subject, text, state, pending, last_seen)
SELECT condition, subject, text, 'firing', 'fired', clock_timestamp()
  FROM held
 WHERE is_confirmed
 ORDER BY condition, subject
    ON CONFLICT (condition, subject) WHERE state = 'firing' DO NOTHING
"""

# A condition that comes and goes would send a message each time. So what was firing
# already within the hour before must stay away for an hour. What nobody was ever told
# of is over silently.
RESOLVE: Final = """
UPDATE jobqueue_alerts_alert AS alert
   SET state = 'resolved', resolved_at = alert.last_seen,
       pending = CASE WHEN alert.pending = 'fired' THEN '' ELSE 'resolved' END
 WHERE alert.state = 'firing'
   AND NOT alert.condition = ANY (%(undecided)s::text[])
   AND NOT EXISTS (
         SELECT FROM jsonb_to_recordset(%(recent)s::jsonb)
                  AS recent (condition text, subject text)
          WHERE recent.condition = alert.condition
            AND recent.subject = alert.subject)
   AND alert.last_seen < clock_timestamp() - CASE
         WHEN EXISTS (SELECT FROM jobqueue_alerts_alert AS earlier
                       WHERE earlier.condition = alert.condition
                         AND earlier.subject = alert.subject
                         AND earlier.state = 'resolved'
                         AND earlier.resolved_at > alert.fired_at - interval '1 hour')
         THEN interval '1 hour' ELSE interval '5 minutes' END
"""


class HeldCondition(NamedTuple):
    """A condition that holds now."""

    condition: str
    subject: str
    text: str
    is_confirmed: bool  # it held before, too, and so it fires


def fire(db: Database, held: Iterable[HeldCondition]) -> None:
    """Go on with the alerts that fire already, and let the confirmed ones fire."""
    rows = json.dumps([one._asdict() for one in held])
    db.run(FIRE, {"held": rows})


def resolve(
    db: Database, recent: Iterable[tuple[str, str]], undecided: Collection[str]
) -> None:
    """Resolve what is over: neither among the ``recent`` conditions, as pairs of
    condition and subject, nor among those that nobody can judge now."""
    rows = [{"condition": name, "subject": subject} for name, subject in recent]
    params = {"recent": json.dumps(rows), "undecided": [*map(str, undecided)]}
    db.run(RESOLVE, params)
