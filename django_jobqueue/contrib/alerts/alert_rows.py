"""Alerts and their deliveries: hands news to channels, plans what is sent together, and
records what was sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.conf.alert_channels import ChannelConfig
from django_jobqueue.store.connection import Database

BATCH: Final = 1_000
MOST_SINGLE: Final = 10  # sends to a channel in five minutes; of more, one digest
MOST_LISTED: Final = 20  # alerts of a digest; of others, the number
GIVEN_UP_AFTER: Final = 24 * 3_600.0  # seconds since it was planned
RETENTION: Final = "90 days"

# The news is taken and handed over in one statement: so one process does, whatever
# others believe about the lease, and none is lost.
HAND_OVER: Final = """
WITH due AS MATERIALIZED (
  SELECT id, condition, pending
    FROM jobqueue_alerts_alert
   WHERE pending <> ''
   ORDER BY id
   LIMIT %(batch)s
     FOR UPDATE SKIP LOCKED
), handed_over AS (
  INSERT INTO jobqueue_alerts_alertdelivery (alert_id, event, channel)
  SELECT due.id, due.pending, channel.name
    FROM due
    JOIN jsonb_to_recordset(%(channels)s::jsonb)
         AS channel (name text, conditions jsonb)
         ON channel.conditions @> to_jsonb(due.condition)
   ORDER BY due.id
)
UPDATE jobqueue_alerts_alert AS alert
   SET pending = '', announced = due.pending,
       announced_at = CASE WHEN due.pending = 'resolved' THEN alert.announced_at
                           ELSE clock_timestamp() END
  FROM due
 WHERE alert.id = due.id
RETURNING alert.id, due.pending
"""

# What waits for a channel: each by itself, or all together if they are too many. After
# a digest the channel is quiet for five minutes. New failures and conditions are apart,
# so that a hundred of the former do not delay the alert that no worker is left.
PLAN: Final = """
WITH unplanned AS MATERIALIZED (
  SELECT delivery.id
    FROM jobqueue_alerts_alertdelivery AS delivery
    JOIN jobqueue_alerts_alert AS alert ON alert.id = delivery.alert_id
   WHERE delivery.channel = %(channel)s AND delivery.send_id IS NULL
     AND delivery.sent_at IS NULL AND delivery.given_up_at IS NULL
     AND (alert.state = 'reported') = %(occurred)s
   ORDER BY delivery.id
   LIMIT %(batch)s
     FOR UPDATE OF delivery SKIP LOCKED
), recent AS (
  SELECT count(*) AS alerts
    FROM jobqueue_alerts_alertdelivery AS delivery
    JOIN jobqueue_alerts_alert AS alert ON alert.id = delivery.alert_id
   WHERE delivery.channel = %(channel)s
     AND delivery.planned_at > clock_timestamp() - interval '5 minutes'
     AND (alert.state = 'reported') = %(occurred)s
   GROUP BY delivery.send_id
), rule AS MATERIALIZED (
  SELECT jobqueue_uuidv7() AS digest, waiting,
         waiting + (SELECT count(*) FROM recent) > %(most)s AS are_many,
         (SELECT count(*) FROM recent WHERE alerts > 1) AS digests
    FROM (SELECT count(*) AS waiting FROM unplanned) AS counted
)
UPDATE jobqueue_alerts_alertdelivery AS delivery
   SET send_id = CASE WHEN rule.are_many THEN rule.digest ELSE jobqueue_uuidv7() END,
       planned_at = clock_timestamp(), next_attempt_at = clock_timestamp()
  FROM unplanned, rule
 WHERE delivery.id = unplanned.id AND rule.digests = 0
   AND (rule.waiting > 1 OR NOT rule.are_many)
"""

DUE: Final = """
SELECT send_id, channel, max(attempts)
  FROM jobqueue_alerts_alertdelivery
 WHERE channel = ANY (%(channels)s) AND sent_at IS NULL AND given_up_at IS NULL
   AND next_attempt_at <= clock_timestamp()
 GROUP BY send_id, channel
 ORDER BY send_id
 LIMIT %(batch)s
"""

_ALERT: Final = """alert.id, alert.condition, alert.subject, alert.text,
       alert.fired_at, alert.resolved_at, coalesce(held.error_class, ''),
       coalesce(held.frame, ''), coalesce(held.template, ''),
       coalesce((SELECT failure.job_type FROM jobqueue_failure AS failure
                  WHERE failure.fingerprint = held.fingerprint
                  LIMIT 1), '')"""
_GROUP: Final = """LEFT JOIN jobqueue_failuregroup AS held
       ON held.fingerprint = CASE WHEN alert.state = 'reported'
                                  THEN alert.subject::uuid END"""

CONTENT: Final = f"""
SELECT delivery.event, {_ALERT}
  FROM jobqueue_alerts_alertdelivery AS delivery
  JOIN jobqueue_alerts_alert AS alert ON alert.id = delivery.alert_id
  {_GROUP}
 WHERE delivery.send_id = %(send_id)s AND delivery.channel = %(channel)s
 ORDER BY delivery.id
"""

ALERTS: Final = f"""
SELECT alert.announced, {_ALERT}
  FROM jobqueue_alerts_alert AS alert
  {_GROUP}
 WHERE alert.id = ANY (%(ids)s::uuid[])
 ORDER BY alert.id
"""

SENT: Final = """
UPDATE jobqueue_alerts_alertdelivery
   SET attempts = attempts + 1, sent_at = clock_timestamp(), error = ''
 WHERE send_id = %(send_id)s AND channel = %(channel)s
"""

FAILED: Final = """
UPDATE jobqueue_alerts_alertdelivery
   SET attempts = attempts + 1, error = %(error)s,
       next_attempt_at = clock_timestamp() + %(wait)s * interval '1 second',
       given_up_at = CASE WHEN planned_at < clock_timestamp()
                               - %(longest)s * interval '1 second'
                          THEN clock_timestamp() END
 WHERE send_id = %(send_id)s AND channel = %(channel)s
RETURNING given_up_at
"""

DROP: Final = f"""
WITH old AS MATERIALIZED (
  SELECT id FROM jobqueue_alerts_alert
   WHERE fired_at < clock_timestamp() - interval '{RETENTION}' AND state <> 'firing'
   LIMIT %(batch)s
     FOR UPDATE SKIP LOCKED
), deliveries AS (
  DELETE FROM jobqueue_alerts_alertdelivery WHERE alert_id IN (SELECT id FROM old)
)
DELETE FROM jobqueue_alerts_alert WHERE id IN (SELECT id FROM old)
RETURNING id
"""


class News(NamedTuple):
    """An alert, and the event that is to be announced."""

    event: str
    id: UUID
    condition: str
    subject: str
    text: str
    fired_at: datetime
    resolved_at: datetime | None
    error_class: str  # the others are of a failure group, and empty without one
    frame: str
    template: str
    job_type: str


class Send(NamedTuple):
    """What is to be sent to a channel: one alert, or a digest."""

    id: UUID
    channel: str
    attempts: int


def hand_over(db: Database, channels: Iterable[ChannelConfig]) -> list[News]:
    """Make deliveries of what is pending, for each channel that wants it; returns the
    news, once."""
    wanted = [{"name": one.name, "conditions": sorted(one.on)} for one in channels]
    rows = db.fetch(HAND_OVER, {"channels": json.dumps(wanted), "batch": BATCH})
    if not rows:
        return []
    return alerts(db, [id for id, _event in rows])


def plan(db: Database, channel: str) -> None:
    """Decide what is sent to this channel together."""
    for occurred in (True, False):
        params = {"occurred": occurred, "batch": BATCH, "most": MOST_SINGLE}
        db.run(PLAN, {"channel": channel, **params})


def due(db: Database, channels: Sequence[str], most: int) -> list[Send]:
    """The sends whose time has come, the oldest first."""
    rows = db.fetch(DUE, {"channels": list(channels), "batch": most})
    return [Send(*row) for row in rows]


def content(db: Database, send: Send) -> list[News]:
    """The news in a send."""
    params = {"send_id": send.id, "channel": send.channel}
    return [News(*row) for row in db.fetch(CONTENT, params)]


def sent(db: Database, send: Send) -> None:
    """The channel has accepted it."""
    db.run(SENT, {"send_id": send.id, "channel": send.channel})


def failed(db: Database, send: Send, error: str, wait: float) -> bool:
    """The channel has not accepted it. It is sent again after so many seconds; returns
    whether it is given up instead."""
    params = {
        "send_id": send.id,
        "channel": send.channel,
        "error": error[:200],
        "wait": wait,
        "longest": GIVEN_UP_AFTER,
    }
    return any(given_up for (given_up,) in db.fetch(FAILED, params))


def drop(db: Database) -> bool:
    """Delete some alerts that are over for long; True if there may be more."""
    return len(db.fetch(DROP, {"batch": BATCH})) == BATCH


def alerts(db: Database, ids: Sequence[UUID]) -> list[News]:
    """These alerts, in the order of their ids, with their last news."""
    rows: list[tuple[Any, ...]] = db.fetch(ALERTS, {"ids": list(ids)})
    return [News(*row) for row in rows]
