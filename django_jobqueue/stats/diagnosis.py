"""Examines the server and the tables of the job queue: what is right, what to know, and
what to mend."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from django.db import Error as DatabaseError
from django.db import connections, transaction
from django.db.migrations.executor import MigrationExecutor

from django_jobqueue.conf import conf
from django_jobqueue.domain.registry import handler_names, registry
from django_jobqueue.models import Host, JobType
from django_jobqueue.rooms import load, models, named, rooms
from django_jobqueue.stats import host_checks, overview, server_checks
from django_jobqueue.stats.attention import concerns
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.stats.findings import (
    MOST_NAMED,
    Finding,
    Findings,
    Level,
    note,
    ok,
    problem,
    shorten_list,
)
from django_jobqueue.stats.overview import Now
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import server_facts
from django_jobqueue.store.reading.claimers import is_alive
from django_jobqueue.store.reading.server_facts import TableFacts
from django_jobqueue.store.reading.stats import WorkerRow
from django_jobqueue.text import numbers


def diagnose() -> Findings:
    """All findings, the server first. Where the server does not answer, or the tables
    are not there, what needs them is not examined."""
    db = DjangoDatabase()
    before = time.time()
    try:
        facts = server_facts.server_facts(db)
    except DatabaseError as error:
        yield _unanswered(error)
        yield from host_checks.grace(())
        return
    here = (before + time.time()) / 2
    yield ok("database", "The server answers.")
    yield from server_checks.server(facts)
    yield from server_checks.clock(facts.time - here)
    yield from server_checks.durability(facts)
    yield from server_checks.session(facts)
    yield from server_checks.timeouts(facts)
    yield from server_checks.monitoring(facts)
    yield from _examine("replication-slots", lambda: server_checks.slots(db))
    yield from _examine("prepared-transactions", lambda: server_checks.prepared(db))
    missing = _examine("migrations", _migrations)
    yield from missing
    if any(one.level is Level.PROBLEM for one in missing):
        yield from host_checks.grace(())
        return
    tables = server_facts.table_facts(db)
    yield from server_checks.vacuum(facts, tables)
    yield from _rights(tables)
    yield from _schema(db)
    yield from _examine("handlers", _handlers)
    yield from _examine("attention", _present)
    yield from _examine("hosts", _hosts)
    yield from _examine("asleep", lambda: host_checks.sleep(db))
    yield from _examine("moves", host_checks.moves)
    yield from _examine("grace", lambda: host_checks.grace(_living()))
    yield from _examine(
        "connections-needed", lambda: host_checks.connections_needed(facts, _living())
    )
    yield from _retention(tables)
    now = database_now(db)
    yield from _examine("disk", lambda: host_checks.disk(db, facts, tables, now))
    for id, path in named("examinations").items():
        yield from _examine(id, load(path))


def _examine(id: str, check: Callable[[], Findings]) -> list[Finding]:
    """Run a check. A refusal by the server is a finding, too, so the other checks
    still work for a role with fewer rights than a worker's."""
    try:
        with transaction.atomic(using=conf.database):
            return list(check())
    except DatabaseError as error:
        text = f"This cannot be examined: {_first_line(error)}"
        if isinstance(error.__cause__, psycopg.errors.InsufficientPrivilege):
            return [note(id, text, "Run this as the workers' role.")]
        return [problem(id, text)]


def _unanswered(error: DatabaseError) -> Finding:
    text = f"The server of {conf.database!r} does not answer: {_first_line(error)}"
    advice = (
        "Start it, or correct DATABASES. Meanwhile workers wait and enqueues raise."
    )
    return problem("database", text, advice)


def _first_line(error: DatabaseError) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _living() -> list[Host]:
    """The hosts whose lease holds."""
    rows = Host.objects.using(conf.database).filter(stopped_at=None)
    return list(rows.filter(lease_until__gt=database_now()))


def _migrations() -> Findings:
    executor = MigrationExecutor(connections[conf.database])
    labels = {room.label for room in rooms()}
    targets = [key for key in executor.loader.graph.leaf_nodes() if key[0] in labels]
    missing = [migration.name for migration, _ in executor.migration_plan(targets)]
    if missing:
        command = "manage.py migrate"
        if conf.database != "default":
            command += f" --database {conf.database}"
        text = f"Migrations are not applied: {', '.join(missing)}."
        yield problem("migrations", text, f"Run {command}.")
    else:
        yield ok("migrations", "All migrations are applied.")


def _rights(tables: Sequence[TableFacts]) -> Findings:
    refused = [table.name for table in tables if not table.is_writable]
    if refused:
        yield problem(
            "privileges",
            f"The role may not read and write {shorten_list(refused)}.",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {refused[0]} TO the role.",
        )
    else:
        yield ok("privileges", "The role may read and write all tables.")


def _schema(db: DjangoDatabase) -> Findings:
    """Columns and indexes that the models have, and the database has not."""
    there, names = server_facts.columns(db), server_facts.indexes(db)
    managed: list[Any] = [model for model in models() if model._meta.managed]
    missing = [
        f"column {model._meta.db_table}.{field.column}"
        for model in managed
        for field in model._meta.local_concrete_fields
        if (model._meta.db_table, field.column) not in there
    ]
    missing += [
        f"index {index.name}"
        for model in managed
        for index in model._meta.indexes
        if index.name not in names
    ]
    if missing:
        text = f"Missing in the database: {shorten_list(missing)}."
        advice = "They were dropped, or a migration was changed: create them again."
        yield problem("schema", text, advice)
    else:
        yield ok("schema", "Every column and index of the models is there.")
    invalid = sorted(name for name, is_valid in names.items() if not is_valid)
    if invalid:
        text = f"Invalid: the build was interrupted: {shorten_list(invalid)}."
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
    rows = set(JobType.objects.using(conf.database).values_list("name", flat=True))
    declared = {one.name for one in registry}
    if undeclared := sorted(declared - rows):
        yield note(
            "handlers-without-job-type",
            f"Handlers without a job type here: {shorten_list(undeclared)}.",
            "Before a deploy this is normal: the first enqueue, worker or migrate "
            "declares them. Otherwise workers and this command run different code.",
        )
    else:
        text = "The job type of every handler is in the database."
        yield ok("handlers-without-job-type", text)
    without = sorted(rows - declared)
    if without:
        yield note(
            "job-types-without-handler",
            f"Job types that no code here handles: {shorten_list(without)}.",
            "Fine if another project handles them; otherwise their jobs wait.",
        )
    else:
        yield ok("job-types-without-handler", "Every job type has a handler here.")


def _present() -> Findings:
    """Living workers, and what the overview says."""
    overview.forget()
    now = overview.read_now()
    yield from _workers(now.present.workers)
    yield from _attention(now)


def _workers(workers: Sequence[WorkerRow]) -> Findings:
    every = [one for one in workers if is_alive(one)]
    living = [one for one in every if not one.is_remote]
    if not living:
        text = "No worker is alive."
        if every:
            text = "Only remote workers are alive, so nothing rescues their jobs."
        yield problem("workers", text, "Start manage.py runworkers.")
        return
    yield ok("workers", f"{numbers.number(len(living))} workers are alive.")
    deaf = [one.name for one in living if not one.listening]
    if deaf and conf.listen is not False:
        yield note(
            "workers-listening",
            f"Workers poll, because they receive no notifications: "
            f"{shorten_list(deaf)}.",
            "Give workers HOST and PORT of the server itself, not of a pooler.",
        )
    else:
        yield ok("workers-listening", "Workers are notified of new jobs at once.")
    releases = sorted({one.release or "none" for one in living})
    if len(releases) > 1:
        text = f"Workers of several releases are alive: {shorten_list(releases)}."
        yield note("releases", text, "Normal during a deploy.")
    else:
        yield ok("releases", f"All workers have the release {releases[0]}.")


def _hosts() -> Findings:
    rows = Host.objects.using(conf.database).exclude(error="").filter(stopped_at=None)
    refused = list(rows.order_by("name").values_list("name", "error")[:MOST_NAMED])
    for name, error in refused:
        text = f"Host {name} refused a request: {error}"
        yield problem("hosts", text, "See jobqueue hosts.")
    if not refused:
        yield ok("hosts", "Each host fulfilled its requests.")


def _retention(tables: Sequence[TableFacts]) -> Findings:
    forever = sorted(status for status, age in conf.retention.items() if age is None)
    size = numbers.megabytes(sum(table.size for table in tables))
    if forever:
        yield note(
            "retention",
            f"Never pruned: {shorten_list(forever)} jobs; the tables use {size}.",
            "Set JOBQUEUE['RETENTION'], or prune.",
        )
    else:
        yield ok("retention", f"Finished jobs are pruned; the tables use {size}.")


def _attention(now: Now) -> Findings:
    """The overview's notices."""
    noticed = concerns(now)
    for one in noticed:
        level = Level.PROBLEM if one.is_bad else Level.NOTE
        yield Finding(one.code.replace("_", "-"), level, one.message)
    if not noticed:
        yield ok("attention", "Nothing on the overview needs attention.")
