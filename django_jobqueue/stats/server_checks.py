"""Checks of the server: its version, settings and clock, and what keeps it from
vacuuming."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django_jobqueue.stats.findings import (
    Finding,
    Findings,
    Level,
    note,
    ok,
    problem,
    shorten_list,
)
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import server_facts
from django_jobqueue.store.reading.server_facts import ServerFacts, TableFacts
from django_jobqueue.text import numbers

OLDEST: Final = 14
MOST_SKEW: Final = 1.0  # seconds
MOST_CONNECTIONS: Final = 0.9  # of those allowed
SHORTEST_TIMEOUT: Final = 5_000  # milliseconds of a statement
MANY_DEAD: Final = 100_000  # rows, if there are more of them than live ones
OLD_XIDS: Final = 1_000_000_000
MUCH_LOG: Final = 1 << 30  # bytes
LONG_PREPARED: Final = 300.0  # seconds between the phases of a commit
TOO_LONG_PREPARED: Final = 3_600.0


def server(facts: ServerFacts) -> Findings:
    """The server that the alias leads to."""
    name = facts.version.split(" on ")[0].split(" (")[0]
    if facts.version_number < OLDEST * 10_000:
        yield problem("server-version", f"{name} is too old.", "Upgrade the server.")
    else:
        yield ok("server-version", facts.version.split(",")[0])
    if facts.is_replica or facts.is_read_only:
        what = "a replica" if facts.is_replica else "read-only"
        yield problem(
            "server-writable",
            f"The server is {what}: no job can be enqueued or claimed.",
            "Point the jobs' alias to the primary server.",
        )
    else:
        yield ok("server-writable", "The server takes writes.")
    if facts.encoding == "UTF8":
        yield ok("server-encoding", "The database is in UTF8.")
    else:
        yield problem(
            "server-encoding",
            f"The database is in {facts.encoding}: data of jobs may not fit.",
            "Create the database again with ENCODING 'UTF8'.",
        )
    share = facts.connections / max(1, facts.connections_allowed)
    text = (
        f"{numbers.number(facts.connections)} of "
        f"{numbers.number(facts.connections_allowed)} connections are in use."
    )
    if share > MOST_CONNECTIONS:
        advice = "Raise max_connections, use a pooler, or run fewer threads."
        yield problem("connections", text, advice)
    else:
        yield ok("connections", text)


def clock(skew: float) -> Findings:
    """The difference of the clocks: the server's less this host's, in seconds."""
    text = f"The clock of this host is {numbers.run_time(abs(skew))} "
    text += "behind that of the server." if skew > 0 else "ahead of that of the server."
    if abs(skew) > MOST_SKEW:
        yield note("clock", text, "Synchronize both by NTP.")
    else:
        yield ok("clock", "The clocks of this host and the server agree.")


def durability(facts: ServerFacts) -> Findings:
    """Check that a crash of the server loses no commits."""
    if not facts.fsync:
        yield problem(
            "durability",
            "fsync is off: a crash of the server can destroy the database.",
            "Set fsync = on.",
        )
    elif not facts.commits_wait:
        yield note(
            "durability",
            "synchronous_commit is off: a crash of the server loses the last jobs and "
            "outcomes, and jobs run again.",
            "Set synchronous_commit = on for the role of the job queue.",
        )
    else:
        yield ok("durability", "Commits survive a crash of the server.")


def session(facts: ServerFacts) -> Findings:
    """Limits of the role that end statements or transactions."""
    timeout = facts.statement_timeout
    if 0 < timeout < SHORTEST_TIMEOUT:
        yield note(
            "statement-timeout",
            f"Statements of this role end after {numbers.duration(timeout)}: those of "
            "bulk operations and of the admin may need longer.",
            "For the role of the workers, ALTER ROLE … SET statement_timeout = 0.",
        )
    else:
        yield ok("statement-timeout", "The role does not limit statements.")
    if facts.idle_timeout:
        yield note(
            "idle-timeout",
            "Transactions that are idle for "
            f"{numbers.duration(facts.idle_timeout)} are ended: handlers in "
            "transaction.atomic() that take longer fail.",
        )
    else:
        yield ok("idle-timeout", "Idle transactions are not ended.")
    if facts.idle_session_timeout:
        yield note(
            "idle-session-timeout",
            "Sessions that are idle for "
            f"{numbers.duration(facts.idle_session_timeout)} are ended: those of web "
            "processes with CONN_MAX_AGE, and of handlers between jobs, connect again.",
            "The queue's own sessions turn idle_session_timeout off. For the others, "
            "ALTER ROLE … SET idle_session_timeout = 0.",
        )
    else:
        yield ok("idle-session-timeout", "Idle sessions are not ended.")


def timeouts(facts: ServerFacts) -> Findings:
    """Limits of the role on waits for locks, and on whole transactions."""
    timeout = facts.lock_timeout
    if 0 < timeout < SHORTEST_TIMEOUT:
        yield note(
            "lock-timeout",
            f"Statements of this role wait {numbers.duration(timeout)} for a lock: "
            "enqueues and handlers that would wait longer fail.",
            "For the role of the workers, ALTER ROLE … SET lock_timeout = 0.",
        )
    else:
        yield ok("lock-timeout", "The role waits for locks.")
    if facts.transaction_timeout:
        yield note(
            "transaction-timeout",
            "Transactions end after "
            f"{numbers.duration(facts.transaction_timeout)}: handlers in "
            "transaction.atomic() that take longer fail.",
            "For the role of the workers, ALTER ROLE … SET transaction_timeout = 0.",
        )
    else:
        yield ok("transaction-timeout", "The role does not limit transactions.")


def monitoring(facts: ServerFacts) -> Findings:
    """Check that the role sees the sessions of other roles."""
    if facts.sees_sessions:
        yield ok("monitoring-rights", "The role sees the sessions of other roles.")
    else:
        yield note(
            "monitoring-rights",
            "The role does not see the sessions of other roles, so their old "
            "transactions are not found.",
            "GRANT pg_read_all_stats TO the role, or run this as one that has it.",
        )


def prepared(db: DjangoDatabase) -> Findings:
    """Prepared transactions that nobody has ended."""
    left = [
        one for one in server_facts.prepared_transactions(db) if one.age > LONG_PREPARED
    ]
    for one in left:
        level = Level.PROBLEM if one.age > TOO_LONG_PREPARED else Level.NOTE
        yield Finding(
            "prepared-transactions",
            level,
            f"The transaction {one.gid} has been prepared for "
            f"{numbers.span(one.age)}: it keeps its locks, and dead rows from being "
            "removed.",
            f"COMMIT PREPARED '{one.gid}', or ROLLBACK PREPARED '{one.gid}'.",
        )
    if not left:
        yield ok("prepared-transactions", "No prepared transaction is left over.")


def slots(db: DjangoDatabase) -> Findings:
    """Replication slots for which the server keeps its log."""
    slots = server_facts.unread_slots(db)
    for slot in slots:
        text = (
            f"Nothing reads the replication slot {slot.name}: the server keeps "
            f"{numbers.megabytes(slot.log_size)} of its log for it."
        )
        advice = f"Start its reader, or SELECT pg_drop_replication_slot('{slot.name}')."
        level = Level.PROBLEM if slot.log_size > MUCH_LOG else Level.NOTE
        yield Finding("replication-slots", level, text, advice)
    if not slots:
        yield ok("replication-slots", "Each replication slot is read.")


def vacuum(facts: ServerFacts, tables: Sequence[TableFacts]) -> Findings:
    """Find causes of slow claims, and of a server that stops."""
    off = [table.name for table in tables if table.is_unvacuumed]
    if not facts.vacuums:
        yield problem(
            "autovacuum",
            "Autovacuum is off: claims become slower and slower.",
            "Set autovacuum = on and track_counts = on.",
        )
    elif off:
        yield problem(
            "autovacuum",
            f"Autovacuum is off for: {shorten_list(off)}.",
            f"Undo it: ALTER TABLE {off[0]} RESET (autovacuum_enabled).",
        )
    else:
        yield ok("autovacuum", "Autovacuum is on for all tables.")
    dead = [
        table for table in tables if table.dead_rows > max(MANY_DEAD, table.live_rows)
    ]
    for table in dead:
        yield note(
            "dead-rows",
            f"{table.name} has {numbers.about(table.dead_rows)} dead rows and "
            f"{numbers.about(table.live_rows)} live ones.",
            f"See old-transaction, then VACUUM {table.name}.",
        )
    if not dead:
        yield ok("dead-rows", "No table has more dead rows than live ones.")
    if facts.xid_age > OLD_XIDS:
        yield problem(
            "xid-age",
            f"The oldest row is {numbers.about(facts.xid_age)} transactions old; at "
            "2,000 million the server stops taking writes.",
            "Find what holds back VACUUM: old transactions, slots, prepared ones.",
        )
    else:
        yield ok("xid-age", f"{numbers.about(facts.xid_age)} transactions old at most.")
