"""Examines the server and the tables of the job queue: what is right, what to know, and
what to mend."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from django.apps import apps
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from django_jobqueue.conf import conf
from django_jobqueue.domain.registry import handler_names, registry
from django_jobqueue.models import Host, JobType
from django_jobqueue.stats import overview
from django_jobqueue.stats.attention import concerns
from django_jobqueue.stats.overview import Now
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import server_facts
from django_jobqueue.store.reading.claimers import is_alive
from django_jobqueue.store.reading.server_facts import ServerFacts, TableFacts
from django_jobqueue.store.reading.stats import WorkerRow
from django_jobqueue.text import numbers

APP: Final = "jobqueue"
OLDEST: Final = 14
MOST_SKEW: Final = 1.0  # seconds
MOST_CONNECTIONS: Final = 0.9  # of those allowed
SHORTEST_TIMEOUT: Final = 5_000  # milliseconds of a statement
MANY_DEAD: Final = 100_000  # rows, if there are more of them than live ones
OLD_XIDS: Final = 1_000_000_000
MUCH_LOG: Final = 1 << 30  # bytes
MOST_NAMED: Final = 5


class Level(StrEnum):
    """How a finding is to be taken."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. ``id`` is stable, for programs."""

    id: str
    level: Level
    text: str
    advice: str = ""


Findings = Iterator[Finding]


def ok(id: str, text: str) -> Finding:
    """Something is right."""
    return Finding(id, Level.OK, text)


def note(id: str, text: str, advice: str = "") -> Finding:
    """Something to know."""
    return Finding(id, Level.NOTE, text, advice)


def problem(id: str, text: str, advice: str = "") -> Finding:
    """Something to mend."""
    return Finding(id, Level.PROBLEM, text, advice)


def diagnose() -> Findings:
    """All findings, the server first. Where the tables are not there, nothing else is
    examined."""
    db = DjangoDatabase()
    before = time.time()
    facts = server_facts.server_facts(db)
    here = (before + time.time()) / 2
    yield from _server(facts)
    yield from _clock(facts.time - here)
    yield from _durability(facts)
    yield from _session(facts)
    yield from _slots(db)
    missing = list(_migrations())
    yield from missing
    if any(one.level is Level.PROBLEM for one in missing):
        return
    tables = server_facts.table_facts(db)
    yield from _vacuum(facts, tables)
    yield from _rights(tables)
    yield from _schema(db)
    yield from _handlers()
    overview.forget()
    now = overview.read_now()
    yield from _workers(now.present.workers)
    yield from _hosts()
    yield from _retention(tables)
    yield from _attention(now)


def _server(facts: ServerFacts) -> Findings:
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
            "Let the alias of the jobs lead to the primary server.",
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


def _clock(skew: float) -> Findings:
    text = f"The clock of this host is {numbers.run_time(abs(skew))} "
    text += "behind that of the server." if skew > 0 else "ahead of that of the server."
    if abs(skew) > MOST_SKEW:
        yield note("clock", text, "Let both keep time by NTP.")
    else:
        yield ok("clock", "The clocks of this host and the server agree.")


def _durability(facts: ServerFacts) -> Findings:
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
        yield ok("durability", "What is committed survives a crash of the server.")


def _session(facts: ServerFacts) -> Findings:
    timeout = facts.statement_timeout
    if 0 < timeout < SHORTEST_TIMEOUT:
        yield note(
            "statement-timeout",
            f"Statements of this role end after {numbers.duration(timeout)}: those of "
            "bulk operations and of the admin may need longer.",
            "For the role of the workers, ALTER ROLE … SET statement_timeout = 0.",
        )
    else:
        yield ok("statement-timeout", "The role lets statements take their time.")
    if facts.idle_timeout:
        yield note(
            "idle-timeout",
            "Transactions that are idle for "
            f"{numbers.duration(facts.idle_timeout)} are ended: handlers in "
            "transaction.atomic() that take longer fail.",
        )
    else:
        yield ok("idle-timeout", "Idle transactions are not ended.")


def _slots(db: DjangoDatabase) -> Findings:
    slots = server_facts.unread_slots(db)
    for slot in slots:
        text = (
            f"Nobody reads the replication slot {slot.name}: the server keeps "
            f"{numbers.megabytes(slot.log_size)} of its log for it."
        )
        advice = f"Start its reader, or SELECT pg_drop_replication_slot('{slot.name}')."
        level = Level.PROBLEM if slot.log_size > MUCH_LOG else Level.NOTE
        yield Finding("replication-slots", level, text, advice)
    if not slots:
        yield ok("replication-slots", "Each replication slot is read.")


def _migrations() -> Findings:
    executor = MigrationExecutor(connections[conf.database])
    targets = [key for key in executor.loader.graph.leaf_nodes() if key[0] == APP]
    missing = [migration.name for migration, _ in executor.migration_plan(targets)]
    if missing:
        command = "manage.py migrate"
        if conf.database != "default":
            command += f" --database {conf.database}"
        text = f"Migrations are not applied: {', '.join(missing)}."
        yield problem("migrations", text, f"Run {command}.")
    else:
        yield ok("migrations", "All migrations are applied.")


def _vacuum(facts: ServerFacts, tables: Sequence[TableFacts]) -> Findings:
    off = [table.name for table in tables if table.is_unvacuumed]
    if not facts.vacuums:
        yield problem(
            "autovacuum",
            "The server does not vacuum by itself: claims become slower and slower.",
            "Set autovacuum = on and track_counts = on.",
        )
    elif off:
        yield problem(
            "autovacuum",
            f"Not vacuumed by itself: {_few(off)}.",
            f"Undo it: ALTER TABLE {off[0]} RESET (autovacuum_enabled).",
        )
    else:
        yield ok("autovacuum", "The server vacuums the tables by itself.")
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


def _rights(tables: Sequence[TableFacts]) -> Findings:
    refused = [table.name for table in tables if not table.is_writable]
    if refused:
        yield problem(
            "privileges",
            f"The role may not read and write {_few(refused)}.",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {refused[0]} TO the role.",
        )
    else:
        yield ok("privileges", "The role may read and write all tables.")


def _schema(db: DjangoDatabase) -> Findings:
    """Columns and indexes that the models have, and the database has not."""
    there, names = server_facts.columns(db), server_facts.indexes(db)
    models: list[Any] = [
        model for model in apps.get_app_config(APP).get_models() if model._meta.managed
    ]
    missing = [
        f"column {model._meta.db_table}.{field.column}"
        for model in models
        for field in model._meta.local_concrete_fields
        if (model._meta.db_table, field.column) not in there
    ]
    missing += [
        f"index {index.name}"
        for model in models
        for index in model._meta.indexes
        if index.name not in names
    ]
    if missing:
        text = f"Missing in the database: {_few(missing)}."
        advice = "Somebody dropped them, or changed a migration: create them again."
        yield problem("schema", text, advice)
    else:
        yield ok("schema", "Every column and index of the models is there.")
    invalid = sorted(name for name, is_valid in names.items() if not is_valid)
    if invalid:
        text = f"Not usable, since they were not built to the end: {_few(invalid)}."
        yield problem("invalid-indexes", text, f"REINDEX INDEX {invalid[0]}.")
    else:
        yield ok("invalid-indexes", "Every index is valid.")


def _handlers() -> Findings:
    known = set(handler_names())
    if not known:
        yield note(
            "handlers",
            "There are no handlers in this project.",
            "Declare functions with @job in the module jobs of an installed app.",
        )
    else:
        yield ok("handlers", f"{numbers.number(len(known))} handlers are known here.")
    rows = JobType.objects.using(conf.database).values_list("name", flat=True)
    without = sorted(set(rows) - {one.name for one in registry})
    if without:
        yield note(
            "job-types-without-handler",
            f"Job types that no code here handles: {_few(without)}.",
            "Nothing to do if another project handles them. Else their jobs wait.",
        )
    else:
        yield ok("job-types-without-handler", "Every job type has a handler here.")


def _workers(workers: Sequence[WorkerRow]) -> Findings:
    every = [one for one in workers if is_alive(one)]
    living = [one for one in every if not one.is_remote]
    if not living:
        text = "No worker is alive."
        if every:
            text = "Only remote workers are alive, so nobody rescues their jobs."
        yield problem("workers", text, "Start manage.py runworkers.")
        return
    yield ok("workers", f"{numbers.number(len(living))} workers are alive.")
    deaf = [one.name for one in living if not one.listening]
    if deaf and conf.listen is not False:
        yield note(
            "workers-listening",
            f"Workers poll, since they hear no notifications: {_few(deaf)}.",
            "Give workers HOST and PORT of the server itself, not of a pooler.",
        )
    else:
        yield ok("workers-listening", "Workers hear of new jobs at once.")
    releases = sorted({one.release or "none" for one in living})
    if len(releases) > 1:
        text = f"Workers of several releases are alive: {_few(releases)}."
        yield note("releases", text, "Nothing to do while a deploy goes on.")
    else:
        yield ok("releases", f"All workers have the release {releases[0]}.")


def _hosts() -> Findings:
    rows = Host.objects.using(conf.database).exclude(error="").filter(stopped_at=None)
    refused = list(rows.order_by("name").values_list("name", "error")[:MOST_NAMED])
    for name, error in refused:
        text = f"Host {name} did not do what it was asked: {error}"
        yield problem("hosts", text, "See jobqueue hosts.")
    if not refused:
        yield ok("hosts", "Each host did what it was asked.")


def _retention(tables: Sequence[TableFacts]) -> Findings:
    forever = sorted(status for status, age in conf.retention.items() if age is None)
    size = numbers.megabytes(sum(table.size for table in tables))
    if forever:
        yield note(
            "retention",
            f"Jobs are kept forever that are {_few(forever)}; the tables have {size}.",
            "Set JOBQUEUE['RETENTION'], or prune.",
        )
    else:
        yield ok("retention", f"Every job is deleted at last; the tables have {size}.")


def _attention(now: Now) -> Findings:
    """The overview's notices."""
    noticed = concerns(now)
    for one in noticed:
        level = Level.PROBLEM if one.is_bad else Level.NOTE
        yield Finding(one.code.replace("_", "-"), level, one.message)
    if not noticed:
        yield ok("attention", "Nothing on the overview needs attention.")


def _few(names: Sequence[str]) -> str:
    """The first names, and how many there are beside them."""
    shown = ", ".join(names[:MOST_NAMED])
    left = len(names) - MOST_NAMED
    return f"{shown} and {numbers.number(left)} more" if left > 0 else shown
