"""The schema agrees: what the store writes exists, and every archiving copies the
same."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from functools import cache

from django.db import connection

from django_jobqueue import rooms
from django_jobqueue.migrations._sql import FOLLOW
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.store.columns import JOB_COLUMNS, OPTIONS, copied_to
from tests.architecture.source import modules
from tests.store.work_tables import HOMES, texts_of

INTO = re.compile(
    r"\b(?:INSERT INTO|COPY)\s+(jobqueue_\w+)(?:\s+AS\s+\w+)?\s*\(([^()]*)\)"
)
SET = re.compile(
    r"\bUPDATE\s+(jobqueue_\w+)(?:\s+AS\s+\w+)?\s+SET\s+(.*?)"
    r"(?=\bFROM\b|\bWHERE\b|\bRETURNING\b|\Z)",
    re.DOTALL,
)
SLOT = re.compile(r"\{\w+\}")
TABLE = re.compile(
    r"\b(jobqueue_(?!uuidv7|unique_key|limit_key|weight|wanted_slots|channel|idle_hosts"
    r"|notify_hosts|is_new|later|d_)[a-z_]+)\b"
)

# What a job is, wherever it is. An archived job has more, a queued one has more.
COPIED = {*copied_to("archive"), "attempts", "crashes"}
STARTED = {"started_at", "wait_ms", "run_ms", "worker", "release"}
ALWAYS = COPIED | {"status", "finished_at"}
ERROR = {"error_class", "error_message", "fingerprint"}
LIMIT = {"effective_max_attempts"}
ARCHIVING = {
    "store/queue/finish.py SUCCEED": ALWAYS | STARTED | {"result"},
    "store/queue/finish_unsuccessful.py END": ALWAYS | STARTED | ERROR | LIMIT,
    "store/queue/rescue.py RESCUE": ALWAYS | STARTED | ERROR | LIMIT,
    "store/queue/rescue.py TAKE_OVER": ALWAYS | STARTED | ERROR | LIMIT,
    "store/control/cancel.py CANCEL": ALWAYS | LIMIT | {"error_message"},
    "store/control/fail.py FAIL": ALWAYS | LIMIT | {"error_message"},
    "store/queue/release.py RELEASE": ALWAYS | LIMIT | {"error_message"},
    "store/queue/release.py RECOVER": ALWAYS | LIMIT | {"error_message"},
    "store/queue/release.py FROM_MOVES": ALWAYS | LIMIT | {"error_message"},
    "store/queue/expire.py EXPIRE": ALWAYS | LIMIT,
}
ROLLED_BACK = "store/queue/insert_once.py TRY_ARCHIVE"  # at once


@cache
def statements() -> dict[str, str]:
    """Every SQL constant of the store that is no part of another, by file and name."""
    found = {}
    for module in modules():
        if module.path.startswith(HOMES):
            for name, value in texts_of(importlib.import_module(module.name)).items():
                if name.strip("_").isupper():
                    is_fragment = name.startswith("_") and SLOT.search(value)
                    if not is_fragment:  # of statements that are here, too
                        found[f"{module.path} {name}"] = value
    return {
        name: text
        for name, text in found.items()
        if not any(text in other for other in found.values() if other != text)
    }


def columns() -> dict[str, set[str]]:
    """The columns of every table, as the models have them."""
    return {
        model._meta.db_table: {
            field.column
            for field in model._meta.get_fields()
            if getattr(field, "column", None)
        }
        for model in rooms.models()
    }


def split(text: str) -> list[str]:
    return [name.strip().strip('"') for name in text.split(",")]


def inserted() -> Iterator[tuple[str, str, list[str]]]:
    """Constant, table and columns of every INSERT and COPY."""
    for name, statement in statements().items():
        for table, names in INTO.findall(statement):
            yield name, table, split(names)


def assigned(text: str) -> list[str]:
    """The columns that a SET assigns to: names before ``=`` outside of brackets."""
    depth, flat = 0, ""
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        flat += letter if depth == 0 else ""
    names = [part.partition("=")[0].strip().strip('"') for part in flat.split(",")]
    return [name for name in names if re.fullmatch(r"\w+", name)]


def test_every_column_that_is_inserted_into_exists() -> None:
    known, seen = columns(), set()
    for name, table, names in inserted():
        seen.add(table)
        assert table in known, name
        assert set(names) <= known[table], name
        assert len(set(names)) == len(names), name
    assert {"jobqueue_queuedjob", "jobqueue_archivedjob", "jobqueue_failure"} <= seen


def test_every_column_that_is_updated_exists() -> None:
    known, count = columns(), 0
    for name, statement in statements().items():
        for table, text in SET.findall(statement):
            names = assigned(text)
            assert names, name
            assert set(names) <= known[table], name
            count += 1
    assert count >= 10


def test_every_table_that_is_named_exists() -> None:
    known = columns()
    named = {table for text in statements().values() for table in TABLE.findall(text)}
    assert named <= set(known)
    assert len(named) >= 6


def test_every_archiving_writes_the_same_of_a_job_and_there_is_no_other() -> None:
    into = [
        (name, set(names))
        for name, table, names in inserted()
        if table == "jobqueue_archivedjob" and name != ROLLED_BACK
    ]
    assert len(into) == len(ARCHIVING)
    assert dict(into) == ARCHIVING


def test_what_is_archived_is_taken_from_the_row_that_goes() -> None:
    """Every column that is copied is in the RETURNING list of the DELETE."""
    for name in ARCHIVING:
        gone = re.search(
            r"DELETE FROM jobqueue_queuedjob.*?RETURNING(.*?)\n\)",
            statements()[name],
            re.DOTALL,
        )
        assert gone is not None, name
        assert COPIED - set(re.findall(r"\bjob\.(\w+)", gone[1])) == set(), name


def test_queued_and_archived_jobs_have_the_copied_columns_in_common() -> None:
    known = columns()
    queued = known[QueuedJob._meta.db_table]
    archived = known[ArchivedJob._meta.db_table]
    assert queued & archived == COPIED | {"status", "started_at"}


TYPES = {"timestamp with time zone": "timestamptz", "varchar": "text"}


def test_the_declared_columns_of_a_job_are_those_of_its_table() -> None:
    types = {
        field.column: (field.rel_db_type if field.is_relation else field.db_type)(
            connection
        )
        for field in QueuedJob._meta.fields
    }
    declared = {one.name: one.sql_type for one in JOB_COLUMNS}
    plain = {name: str(one).partition("(")[0] for name, one in types.items()}
    assert declared == {name: TYPES.get(one, one) for name, one in plain.items()}


def test_a_follower_has_each_option_of_a_job() -> None:
    """The trigger's text is in the migrations, which do not change with the code."""
    ((_, names),) = [
        one for one in INTO.findall(FOLLOW) if one[0] == "jobqueue_queuedjob"
    ]
    assert set(OPTIONS) <= set(split(names))
