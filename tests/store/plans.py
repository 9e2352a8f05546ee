"""The plans that PostgreSQL really uses for the store's statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg

from django_jobqueue.store.connection import OwnConnection, Params
from django_jobqueue.store.prepared import Prepared, PreparedStatement

HOT = "jobqueue_queuedjob"

FIND_PREPARED = """
SELECT name FROM pg_prepared_statements
 WHERE regexp_replace(statement, '\\s+', '', 'g') = %s
"""


@dataclass(frozen=True)
class Plan:
    """A plan, and what its execution touched."""

    root: dict[str, Any]

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """All its nodes."""
        return list(_nodes(self.root))

    @property
    def kinds(self) -> set[str]:
        """The kinds of its nodes."""
        return {node["Node Type"] for node in self.nodes}

    @property
    def buffers(self) -> int:
        """How many pages were looked at."""
        return int(self.root["Shared Hit Blocks"] + self.root["Shared Read Blocks"])

    @property
    def compared(self) -> int:
        """How many pairs of rows were compared in vain."""
        return sum(
            int(node.get("Rows Removed by Join Filter", 0)) for node in self.nodes
        )

    def sorts(self, table: str = HOT) -> list[dict[str, Any]]:
        """The nodes that sorted rows of this table."""
        return [
            node
            for node in self.nodes
            if "Sort" in node["Node Type"]
            and node["Actual Loops"]
            and any(below.get("Relation Name") == table for below in _nodes(node))
        ]

    def scans(self, table: str = HOT) -> list[dict[str, Any]]:
        """The nodes that read this table, not those that change it."""
        return [
            node
            for node in self.nodes
            if node.get("Relation Name") == table and node["Node Type"] != "ModifyTable"
        ]

    def indexes(self, table: str = HOT) -> set[str]:
        """The indexes by which this table is read."""
        return {scan.get("Index Name", scan["Node Type"]) for scan in self.scans(table)}

    def lookups(self, table: str = HOT) -> set[str]:
        """The indexes by which rows of this table are looked up in any order: those of
        bitmaps, too."""
        return {
            below["Index Name"] if "Index Name" in below else below["Node Type"]
            for scan in self.scans(table)
            for below in (_nodes(scan) if "Bitmap" in scan["Node Type"] else [scan])
            if below["Node Type"] != "Bitmap Heap Scan"
        }

    def rows(self, table: str = HOT) -> float:
        """How many rows of this table were read, those filtered out included."""
        return sum(
            (scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0))
            * scan["Actual Loops"]
            for scan in self.scans(table)
        )


def plan_of(db: OwnConnection, statement: str, params: Params) -> Plan:
    """Execute a statement as the store does, undo it, and return its plan.

    The statement is prepared, as every one of this connection is, and the plan is that
    of the prepared statement.
    """
    with db.raw() as connection, connection.transaction(force_rollback=True):
        # Past psycopg, which would forget what it has prepared.
        connection.pgconn.exec_(b"SAVEPOINT before")
        if isinstance(statement, PreparedStatement):
            hot = Prepared(connection, statement)
            hot.rows(connection, params)
            name = hot.name
        else:
            connection.execute(statement, params, binary=True)
            name = _prepared(connection, statement)
        connection.pgconn.exec_(b"ROLLBACK TO SAVEPOINT before")
        names = dict.fromkeys(re.findall(r"%\((\w+)\)s", statement))
        arguments = ", ".join(f"%({name})s" for name in names)
        explain = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE"
        cursor = psycopg.ClientCursor(connection)
        cursor.execute(f'{explain} "{name}" ({arguments})', params)
        (((plan,),),) = cursor.fetchall()
    return Plan(plan["Plan"])


def _prepared(connection: psycopg.Connection[tuple[Any, ...]], statement: str) -> str:
    """The name under which this statement is prepared in this session."""
    numbers: dict[str, int] = {}
    text = re.sub(
        r"%\((\w+)\)s",
        lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}",
        statement,
    )
    wanted = re.sub(r"\s+", "", text.replace("%%", "%"))
    rows = connection.execute(
        FIND_PREPARED, [wanted], prepare=False, binary=False
    ).fetchall()
    assert len(rows) == 1, f"{len(rows)} such statements are prepared"
    name: str = rows[0][0]
    return name


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", []):
        yield from _nodes(child)
