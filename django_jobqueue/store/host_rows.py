"""Stores the rows of hosts: written by their maintenance, asked by operators."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.store.connection import Database
from django_jobqueue.store.notify import News
from django_jobqueue.text.json_reading import read_json

# Made or renewed, and what operators ask comes along. If the row says that its host has
# ended, that one had the same process id, so nothing that was asked of it counts.
KEEP: Final = """
INSERT INTO jobqueue_host AS host (
       id, name, host, identity, embedded, release, processes, threads, async_slots,
       queues, state, applied, error, lease_until)
VALUES (%(id)s, %(name)s, %(host)s, %(identity)s, %(embedded)s, %(release)s,
        %(processes)s, %(threads)s, %(async_slots)s, %(queues)s::jsonb, %(state)s,
        %(applied)s::jsonb, %(error)s,
        clock_timestamp() + %(lease)s * interval '1 second')
    ON CONFLICT (id) DO UPDATE
   SET release = excluded.release, processes = excluded.processes,
       threads = excluded.threads, async_slots = excluded.async_slots,
       queues = excluded.queues, state = excluded.state, applied = excluded.applied,
       error = excluded.error, renewed_at = clock_timestamp(),
       lease_until = excluded.lease_until, stopped_at = NULL,
       started_at = CASE WHEN host.stopped_at IS NULL AND host.state <> 'restarting'
                         THEN host.started_at ELSE clock_timestamp() END,
       desired = CASE WHEN host.stopped_at IS NULL THEN host.desired ELSE '{}' END
RETURNING desired::text
"""

DESIRED: Final = """
SELECT desired::text FROM jobqueue_host WHERE id = %(id)s
"""

STOPPED: Final = """
UPDATE jobqueue_host
   SET state = 'stopped', stopped_at = clock_timestamp(), applied = %(applied)s::jsonb
 WHERE id = %(id)s
"""

PREDECESSORS: Final = """
SELECT id, identity FROM jobqueue_host
 WHERE host = %(host)s AND stopped_at IS NULL AND id <> %(id)s
"""

# A row that somebody has locked keeps no host from starting.
LOST: Final = """
WITH dead AS MATERIALIZED (
  SELECT id FROM jobqueue_host
   WHERE id = ANY (%(ids)s::uuid[]) AND stopped_at IS NULL
     FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE jobqueue_host AS host
   SET state = 'lost', stopped_at = clock_timestamp()
  FROM dead
 WHERE host.id = dead.id
"""

ALIVE: Final = """
stopped_at IS NULL AND lease_until > clock_timestamp()
"""

FACTS: Final = f"""
SELECT id, name, embedded, processes, threads, async_slots, queues::text
  FROM jobqueue_host
 WHERE id = ANY (%(ids)s::uuid[]) AND {ALIVE}
 ORDER BY name, id
"""

COUNT_LIVING: Final = f"""
SELECT count(*) FROM jobqueue_host WHERE {ALIVE}
"""

# Requests add up: who asks for other threads leaves the processes that somebody else
# asked for. The host hears of it at the commit, if a worker of it listens.
ASK: Final = f"""
WITH numbered AS MATERIALIZED (
  SELECT id, coalesce((desired ->> 'number')::bigint, 0) + 1 AS number
    FROM jobqueue_host
   WHERE id = ANY (%(ids)s::uuid[]) AND {ALIVE}
   ORDER BY id
     FOR NO KEY UPDATE
)
UPDATE jobqueue_host AS host
   SET desired = desired || %(request)s::jsonb
                 || jsonb_build_object('number', numbered.number)
                 || CASE WHEN %(counted)s <> ''
                         THEN jsonb_build_object(%(counted)s::text, numbered.number)
                         ELSE '{{}}' END
  FROM numbered
 WHERE host.id = numbered.id
RETURNING host.id, numbered.number,
          pg_notify('jobqueue', '{News.HOST.prefix}' || host.name)::text
"""

FORGET: Final = """
DELETE FROM jobqueue_host
 WHERE coalesce(stopped_at, lease_until) < clock_timestamp() - interval '1 day'
"""


class HostReport(NamedTuple):
    """The state of a host, as its row has it."""

    id: UUID
    name: str
    host: str
    identity: str
    embedded: bool
    release: str
    processes: int
    threads: int
    async_slots: int
    queues: Sequence[str] | None
    state: str
    applied: Mapping[str, Any]
    error: str


class HostFacts(NamedTuple):
    """The part of a host's row that decides what it can be asked for."""

    id: UUID
    name: str
    embedded: bool
    processes: int
    threads: int
    async_slots: int
    queues: list[str] | None


def keep(db: Database, report: HostReport, lease: float) -> dict[str, Any]:
    """Make or renew the row of a host; returns what operators ask of it."""
    params = report._asdict()
    queues = report.queues
    params |= {
        "queues": None if queues is None else json.dumps(list(queues)),
        "applied": json.dumps(dict(report.applied)),
        "lease": lease,
    }
    return _object(db.fetch(KEEP, params)[0][0])


def desired(db: Database, id: UUID) -> dict[str, Any] | None:
    """Operators' requests to this host; None if it has no row."""
    rows = db.fetch(DESIRED, {"id": id})
    return _object(rows[0][0]) if rows else None


def stopped(db: Database, id: UUID, applied: Mapping[str, Any]) -> None:
    """Record that this host has ended."""
    db.run(STOPPED, {"id": id, "applied": json.dumps(dict(applied))})


def predecessors(db: Database, host: str, id: UUID) -> dict[UUID, str]:
    """The identities of the other hosts on this machine that have not ended."""
    rows = db.fetch(PREDECESSORS, {"host": host, "id": id})
    return dict(rows)


def lost(db: Database, ids: Sequence[UUID]) -> None:
    """Record that these hosts have died."""
    db.run(LOST, {"ids": list(ids)})


def living(db: Database, ids: Sequence[UUID]) -> list[HostFacts]:
    """Those of these hosts that are alive."""
    rows = db.fetch(FACTS, {"ids": list(ids)})
    return [
        HostFacts._make((*row[:-1], None if row[-1] is None else read_json(row[-1])))
        for row in rows
    ]


def count_living(db: Database) -> int:
    """How many hosts are alive."""
    ((number,),) = db.fetch(COUNT_LIVING)
    return int(number)


def ask(
    db: Database, ids: Sequence[UUID], request: Mapping[str, Any], counted: str = ""
) -> dict[UUID, int]:
    """Ask hosts for something; returns those that are alive to hear it, with the
    number of the request. What is ``counted`` is asked for under that number."""
    params = {"ids": list(ids), "request": json.dumps(dict(request))}
    rows = db.fetch(ASK, {**params, "counted": counted})
    return {id: number for id, number, _ in rows}


def forget(db: Database) -> None:
    """Delete the rows of hosts that ended more than a day ago."""
    db.run(FORGET)


def _object(text: str) -> dict[str, Any]:
    """A JSON object; people may have written anything else by hand."""
    value = read_json(text)
    return value if isinstance(value, dict) else {}
