"""Takes, renews and releases leases by name, by the database's clock.

Whoever takes a lease locks its row ``FOR UPDATE``, and a transaction that needs the
lease locks it ``FOR KEY SHARE``: these two exclude each other, so nobody takes a lease
over before such a transaction has ended. A renewal changes no key, and so waits for
neither; with ``FOR SHARE`` it would wait for the holder's own transaction, and a lease
would lapse in each one that is longer than its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from django_jobqueue.store.connection import Database
from django_jobqueue.store.notify import News

# A row that somebody has locked is not waited for: its holder is committing what needs
# the lease, or others are taking it. With one's own token it may be taken again: that
# is how to go on if the answer was lost. The last part says who holds it; it sees the
# row as it was before the statement.
TAKE: Final = """
WITH free AS MATERIALIZED (
  SELECT name FROM jobqueue_leases_lease
   WHERE name = %(name)s
     AND (token IS NULL OR token = %(token)s
          OR lease_until <= clock_timestamp() AND %(takes_over)s)
     FOR UPDATE SKIP LOCKED
), taken AS (
  UPDATE jobqueue_leases_lease AS lease
     SET fence = lease.fence + 1, token = %(token)s, holder = %(holder)s,
         host = %(host)s, taken_at = clock_timestamp(), renewed_at = clock_timestamp(),
         lease_until = clock_timestamp() + %(ttl)s * interval '1 second',
         awaited = false
    FROM free
   WHERE lease.name = free.name
  RETURNING lease.fence
), made AS (
  INSERT INTO jobqueue_leases_lease (name, fence, token, holder, host, lease_until)
  SELECT %(name)s, 1, %(token)s, %(holder)s, %(host)s,
         clock_timestamp() + %(ttl)s * interval '1 second'
   WHERE NOT EXISTS (SELECT FROM jobqueue_leases_lease WHERE name = %(name)s)
      ON CONFLICT (name) DO NOTHING
  RETURNING fence
)
SELECT fence, '', 0::float8, false FROM taken
UNION ALL
SELECT fence, '', 0::float8, false FROM made
UNION ALL
SELECT 0, holder, extract(epoch FROM lease_until - clock_timestamp())::float8,
       NOT awaited OR renewed_at > clock_timestamp() + interval '1 second'
  FROM jobqueue_leases_lease
 WHERE name = %(name)s AND token IS NOT NULL AND NOT EXISTS (SELECT FROM taken)
"""

# Who waits says so, or nobody would be notified. A lease from before the clock was set
# back holds as long as it was to; its holder renews it anyway, if it is alive.
AWAIT: Final = """
UPDATE jobqueue_leases_lease
   SET awaited = true,
       lease_until = CASE WHEN renewed_at > clock_timestamp() + interval '1 second'
                          THEN clock_timestamp() + (lease_until - renewed_at)
                          ELSE lease_until END,
       renewed_at = least(renewed_at, clock_timestamp())
 WHERE name = %(name)s AND token IS NOT NULL
"""

# A lease that has lapsed and that nobody has taken is still its holder's. One whose row
# is locked is returned as locked; it may be being taken over.
RENEW: Final = """
WITH mine AS MATERIALIZED (
  SELECT lease.name, beat.ttl
    FROM unnest(%(names)s::text[], %(tokens)s::uuid[], %(ttls)s::float8[])
         AS beat (name, token, ttl)
    JOIN jobqueue_leases_lease AS lease
      ON lease.name = beat.name AND lease.token = beat.token
   ORDER BY lease.name
     FOR NO KEY UPDATE OF lease SKIP LOCKED
), renewed AS (
  UPDATE jobqueue_leases_lease AS lease
     SET renewed_at = clock_timestamp(),
         lease_until = clock_timestamp() + mine.ttl * interval '1 second'
    FROM mine
   WHERE lease.name = mine.name
  RETURNING lease.token
)
SELECT token, false FROM renewed
UNION ALL
SELECT lease.token, true
  FROM unnest(%(names)s::text[], %(tokens)s::uuid[]) AS beat (name, token)
  JOIN jobqueue_leases_lease AS lease
    ON lease.name = beat.name AND lease.token = beat.token
 WHERE lease.name NOT IN (SELECT name FROM mine)
"""

# Notifies only if somebody waits: a commit that notifies takes a lock of the whole
# server.
RELEASE: Final = f"""
UPDATE jobqueue_leases_lease
   SET token = NULL, lease_until = clock_timestamp()
 WHERE name = %(name)s AND token = %(token)s
RETURNING CASE WHEN awaited
               THEN pg_notify('jobqueue', '{News.LEASE.prefix}' || name)::text END
"""

# The key is locked as by whoever takes the lease, so that it waits for transactions
# that need the lease, and none of them commits after it.
TAKE_AWAY: Final = f"""
WITH held AS MATERIALIZED (
  SELECT name FROM jobqueue_leases_lease
   WHERE name = ANY (%(names)s::text[]) AND token IS NOT NULL
   ORDER BY name
     FOR UPDATE
)
UPDATE jobqueue_leases_lease AS lease
   SET fence = lease.fence + 1, token = NULL, lease_until = clock_timestamp()
  FROM held
 WHERE lease.name = held.name
RETURNING lease.name, pg_notify('jobqueue', '{News.LEASE.prefix}' || lease.name)::text
"""

LOCK: Final = """
SELECT fence FROM jobqueue_leases_lease
 WHERE name = %(name)s AND token = %(token)s
   FOR KEY SHARE
"""


class Claimant(NamedTuple):
    """A bid for a lease: by whom, and for how long."""

    name: str  # of the lease
    token: UUID  # of this taking, known to nobody else
    ttl: float  # seconds
    holder: str  # host:pid
    host: str
    takes_over: bool = True  # a lease that lapsed, by the database's clock


class Answer(NamedTuple):
    """The lease, or who has it."""

    fence: int  # 0: it is not free
    holder: str = ""  # empty if it is not known
    seconds_left: float = 0.0  # until it lapses, unless it is renewed
    is_unawaited: bool = False  # nobody would be notified: see ``wait_for``


class Beat(NamedTuple):
    """A lease that is to be renewed."""

    name: str
    token: UUID
    ttl: float  # seconds


def take(db: Database, claimant: Claimant) -> Answer:
    """Take a lease if it is free, or was not renewed in time."""
    params = claimant._asdict()
    rows = db.fetch(TAKE, params)
    return Answer(*rows[0]) if rows else Answer(0)


def wait_for(db: Database, name: str) -> None:
    """Have whoever waits be notified when this lease is free. It may be free by now."""
    db.run(AWAIT, {"name": name})


def renew(db: Database, beats: Sequence[Beat]) -> dict[UUID, bool]:
    """Renew leases; returns the tokens of those that are still held, and whether each
    was renewed: not if somebody has locked its row."""
    params = {
        "names": [beat.name for beat in beats],
        "tokens": [beat.token for beat in beats],
        "ttls": [beat.ttl for beat in beats],
    }
    return {token: not is_locked for token, is_locked in db.fetch(RENEW, params)}


def release(db: Database, name: str, token: UUID) -> None:
    """Let others have a lease, if it is held with this token."""
    db.fetch(RELEASE, {"name": name, "token": token})


def take_away(db: Database, names: Sequence[str]) -> list[str]:
    """Take leases from their holders; returns the names of those that were held."""
    return sorted(row[0] for row in db.fetch(TAKE_AWAY, {"names": list(names)}))


def lock(db: Database, name: str, token: UUID) -> bool:
    """True if a lease is held with this token; then nobody takes it before the open
    transaction ends."""
    return bool(db.fetch(LOCK, {"name": name, "token": token}))
