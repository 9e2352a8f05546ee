"""SQL stays home: in ``store/`` and in migrations; a few places have a reason."""

from __future__ import annotations

import ast
import re

import pytest

from tests.architecture.source import modules
from tests.store.work_tables import HOMES

HOME = (
    *HOMES,
    # The clock that a test moves is functions of a session; no engine needs them.
    "testing/session_clock.py",
    "contrib/importing/foreign_tables.py",  # of other systems
    "contrib/leases/lease_readings.py",
    "contrib/leases/lease_rows.py",
    "contrib/remote/endpoint_rows.py",
    "contrib/remote/remote_workers.py",
)

# Every other statement of the package, and why it is where it is.
ELSEWHERE: dict[tuple[str, str], str] = {
    ("processes/listener.py", "LISTEN {}"): "about the session that it waits on",
    ("processes/listener.py", "SELECT 1"): "a sign of life on that session",
    ("processes/listener.py", "UNLISTEN *"): "about that session",
    (
        "execution/connection_reset.py",
        "RESET SESSION AUTHORIZATION",
    ): "a handler's session",
    ("execution/connection_reset.py", "SET TIME ZONE {}"): "as Django had set it there",
    ("execution/connection_reset.py", "SET ROLE {}"): "as Django had set it there",
    (
        "checks/__init__.py",
        "SHOW server_version_num",
    ): "asked before there is any table",
    ("checks/__init__.py", "SHOW server_encoding"): "likewise",
    (
        "contrib/leases/apps.py",
        "ALTER TABLE jobqueue_leases_lease SET (fillfactor = 50)",
    ): "how a table is stored, with or without migrations",
    (
        "contrib/schedules/apps.py",
        "ALTER TABLE jobqueue_schedules_schedule SET (fillfactor = 50)",
    ): "likewise",
}

NAME = r"[\w.\"{}]+"
STATEMENT = re.compile(
    rf"""\s*(--.*\n\s*)*(
      SELECT\s+\S
    | INSERT\s+INTO\s
    | UPDATE\s+{NAME}(\s+AS\s+{NAME})?\s+SET\s
    | DELETE\s+FROM\s
    | MERGE\s+INTO\s
    | WITH\s+(RECURSIVE\s+)?{NAME}\s*(\([^)]*\)\s*)?AS\s
    | COPY\s+[\w({{]
    | (UN)?LISTEN\s+({NAME}|\*)\s*\Z
    | NOTIFY\s+{NAME}
    | SET\s+(LOCAL\s+|SESSION\s+)?({NAME}\s*(=|TO)\s|TIME\s+ZONE|ROLE)
    | RESET\s+(ALL|SESSION|ROLE|{NAME}\s*\Z)
    | SHOW\s+{NAME}\s*\Z
    | (CREATE|ALTER|DROP)\s+(OR\s+REPLACE\s+)?(TEMP\s+|UNIQUE\s+)?
      (TABLE|INDEX|VIEW|FUNCTION|TRIGGER|SEQUENCE|TYPE|ROLE|SCHEMA|DATABASE|EXTENSION)\s
    | TRUNCATE\s+\w
    | LOCK\s+TABLE\s
    | DISCARD\s+\w+\s*\Z
    | (BEGIN|COMMIT|ROLLBACK)\s*;?\s*\Z
    | (VACUUM|ANALYZE|EXPLAIN|CALL|DO)\s+[\w$({{]
    )""",
    re.VERBOSE,
)


def statements() -> list[tuple[str, str, int]]:
    """File, statement and line of every statement in the package."""
    return [
        (module.path, text.strip(), line)
        for module in modules()
        for text, line in module.texts
        if STATEMENT.match(text)
    ]


@pytest.mark.dear
def test_every_statement_is_in_the_store_or_has_a_reason() -> None:
    """And no reason is given in vain."""
    strangers, used = [], set()
    for path, text, line in statements():
        known = {one for one in ELSEWHERE if path == one[0] and text.startswith(one[1])}
        used |= known
        if not known and not path.startswith(HOME):
            strangers.append((path, line, text))
    assert (strangers, ELSEWHERE.keys() - used) == ([], set())


@pytest.mark.dear
def test_the_store_is_where_the_statements_are() -> None:
    files = {path for path, _, _ in statements()}
    rooms = {
        "queue": "insert_once claim finish expire rescue release",
        "control": "cancel replay reschedule prune",
    }
    verbs = {
        f"store/{room}/{verb}.py" for room in rooms for verb in rooms[room].split()
    }
    assert verbs <= files


@pytest.mark.dear
def test_no_statement_is_made_by_editing_the_text_of_another() -> None:
    """Fragments have slots: a slot that is not filled is an error, and a replacement
    that finds nothing is none."""
    edited = [
        (module.path, node.lineno)
        for module in modules()
        for node in module.nodes
        if module.path.startswith(HOME)
        and isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "replace"
        and any(is_fragment(part) for part in ast.walk(node.func.value))
    ]
    assert edited == []


def is_fragment(node: ast.AST) -> bool:
    """Whether this is a constant by its name, or a statement."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and STATEMENT.match(node.value) is not None
    name = getattr(node, "id", getattr(node, "attr", ""))
    return bool(re.fullmatch(r"_?[A-Z][A-Z_]+", name))


STATEMENTS = r"""
SELECT 1 | SELECT id\n  FROM job | INSERT INTO a (b) VALUES (1) | UPDATE a SET b = 1
UPDATE a AS held\n   SET b = 1 | DELETE FROM a
WITH held AS MATERIALIZED (SELECT 1) SELECT 2 | WITH RECURSIVE lane (n) AS (SELECT 1)
COPY a (b) FROM STDIN | LISTEN jobqueue | SET statement_timeout = 5
SET search_path TO x | SHOW server_version | TRUNCATE a | -- a comment\nSELECT 1
CREATE OR REPLACE FUNCTION f() RETURNS int
"""
SENTENCES = """
LISTEN hears nothing on this connection | Update the server. | SELECT | SETTINGS
With --threads 0 nothing can run. | Show the queues | Upgrade the server.
"""


def test_a_statement_is_told_from_a_sentence() -> None:
    def given(texts: str) -> list[str]:
        lines = re.split(r"\s*\|\s*|\n", texts.strip())
        return [line.replace("\\n", "\n") for line in lines]

    assert [text for text in given(STATEMENTS) if not STATEMENT.match(text)] == []
    assert [text for text in given(SENTENCES) if STATEMENT.match(text)] == []
