"""Selections as SQL: the only place where a condition on jobs becomes SQL.

The conditions name the table, so that they fit any statement that reads it under its
own name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final
from uuid import UUID

from django_jobqueue.domain.name_patterns import EVERY, like_pattern
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.store.already_replayed import IS_REPLAYED

TABLES: Final = {
    Table.QUEUED: "jobqueue_queuedjob",
    Table.ARCHIVED: "jobqueue_archivedjob",
}

Part = tuple[str, list[Any]]  # SQL with a {} for each value

LONGEST_NUMBER: Final = 18  # digits
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?")

_COLUMNS: Final = {
    "type": "job_type",
    "queue": "queue",
    "priority": "priority",
    "attempts": "attempts",
    "by": "enqueued_by",
    "replay-of": "replay_of",
    "operation": "bulk_operation_id",
    "created": "created_at",
    "due": "run_after",
    "started": "started_at",
    "status": "status",
    "finished": "finished_at",
    "ran": "run_ms",
    "waited": "wait_ms",
    "release": "release",
}

_STATES: Final = {
    "ready": "{table}.status = 'queued' AND {table}.run_after <= statement_timestamp()",
    "later": "{table}.status = 'queued' AND {table}.run_after > statement_timestamp()",
    "retrying": "{table}.status = 'queued' AND {table}.attempts > 0"
    " AND {table}.run_after > statement_timestamp()",
    "running": "{table}.status = 'running' AND {table}.cancel_requested_at IS NULL",
    "cancelling": "{table}.status = 'running'"
    " AND {table}.cancel_requested_at IS NOT NULL",
    "lapsed": "{table}.status = 'running' AND NOT EXISTS ("
    "SELECT FROM jobqueue_worker AS of_job WHERE of_job.id = {table}.worker_id"
    " AND (of_job.state IN ('endpoint', 'moving')"
    " OR (of_job.state IN ('running', 'draining')"
    " AND of_job.lease_until > statement_timestamp())))",
}


def condition(selection: Selection, placeholder: Callable[[Any], str]) -> str:
    """The whole of it as one SQL condition.

    ``placeholder`` takes each value and returns what stands for it: "%s", or
    "%(name)s".
    """
    if selection.nothing:
        return "false"
    table = TABLES[selection.table]
    parts = [
        f"({sql.format(*map(placeholder, values), table=table)})"
        for sql, values in _parts(selection)
    ]
    return " AND ".join(parts) or "true"


def _parts(selection: Selection) -> Iterator[Part]:
    for term in selection.terms:
        special = _SPECIAL.get(term.field)
        if special is not None:
            yield special(term, selection.table)
        else:
            column = _COLUMNS[term.field]
            yield f"{{table}}.{column} {term.operator} {{}}", [term.value]


def _id(term: Term, table: Table) -> Part:
    return "{table}.id = ANY ({}::uuid[])", [list(term.value)]


def _statuses(term: Term, table: Table) -> Part:
    return "{table}.status = ANY ({}::text[])", [list(term.value)]


def _names(column: str) -> Callable[[Term, Table], Part]:
    """Names that one of several patterns fits."""

    def part(term: Term, table: Table) -> Part:
        exact = [name for name in term.value if EVERY not in name]
        likes = [like_pattern(name) for name in term.value if EVERY in name]
        conditions: dict[str, list[str]] = {
            f"{{table}}.{column} = ANY ({{}}::text[])": exact,
            f"{{table}}.{column} LIKE ANY ({{}}::text[])": likes,
        }
        given = {sql: names for sql, names in conditions.items() if names}
        return " OR ".join(given) or "false", [*given.values()]

    return part


def _state(term: Term, table: Table) -> Part:
    return _STATES[term.value], []


def _error(term: Term, table: Table) -> Part:
    """By the class; without a dot, by its last name. Of a queued job, by its last
    failure."""
    named = "{column} = {{}}"
    if "." not in term.value:
        named = "substring({column} from '[^.]*$') = {{}}"
    if table is Table.ARCHIVED:
        return named.format(column="{table}.error_class"), [term.value]
    last = (
        "(SELECT failure.error_class FROM jobqueue_failure AS failure"
        " WHERE failure.job_id = {table}.id ORDER BY failure.id DESC LIMIT 1)"
    )
    tried = "({table}.attempts > 0 OR {table}.crashes > 0)"  # spares a look for each
    return f"{tried} AND {named.format(column=last)}", [term.value]


def _group(term: Term, table: Table) -> Part:
    """One failure group, or any of some. Of a queued job, by its last failure: the
    first look finds the few by an index, the second one drops those that failed
    otherwise since."""
    one = isinstance(term.value, UUID)
    is_meant = "= {}" if one else "= ANY ({}::uuid[])"
    value = term.value if one else list(term.value)
    if table is Table.ARCHIVED:
        return f"{{table}}.fingerprint {is_meant}", [value]
    last = (
        "(SELECT failure.fingerprint FROM jobqueue_failure AS failure"
        " WHERE failure.job_id = {table}.id"
        " AND failure.\"end\" NOT IN ('snoozed', 'released')"
        " ORDER BY failure.id DESC LIMIT 1)"
    )
    return (
        "{table}.id IN (SELECT of_group.job_id FROM jobqueue_failure AS of_group"
        f" WHERE of_group.fingerprint {is_meant}) AND {last} {is_meant}",
        [value, value],
    )


def _worker(term: Term, table: Table) -> Part:
    if table is Table.ARCHIVED:
        return "{table}.worker = {}", [term.value]
    return (
        "{table}.status = 'running' AND {table}.worker_id IN ("
        "SELECT of_job.id FROM jobqueue_worker AS of_job WHERE of_job.name = {})",
        [term.value],
    )


def _data(term: Term, table: Table) -> Part:
    """Containment, which a GIN index serves where a project made one. A number is
    also found where it is written as a text, and the other way round."""
    values: list[str] = []
    for value in forms_of(term.value):
        for key in reversed(term.path):
            value = {key: value}
        values.append(json.dumps(value))
    return " OR ".join(["{table}.data @> {}::jsonb"] * len(values)), values


def forms_of(value: Any) -> list[Any]:
    """The value, and the same number as a text, or as a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [value, json.dumps(value)]
    is_short = isinstance(value, str) and len(value) <= LONGEST_NUMBER
    if is_short and _NUMBER.fullmatch(value):
        return [value, json.loads(value)]
    return [value]


def _text(term: Term, table: Table) -> Part:
    """Match without regard to case, and with LIKE's special characters escaped."""
    has = "strpos(lower({column}), lower({{}})) > 0"
    if table is Table.ARCHIVED:
        columns = ("job_type", "error_class", "error_message")
        conditions = [has.format(column=f"{{table}}.{column}") for column in columns]
        return " OR ".join(conditions), [term.value] * len(columns)
    last = (
        "(SELECT failure.error_class || ' ' || failure.error_message"
        " FROM jobqueue_failure AS failure"
        " WHERE failure.job_id = {table}.id ORDER BY failure.id DESC LIMIT 1)"
    )
    named, failed = has.format(column="{table}.job_type"), has.format(column=last)
    tried = "({table}.attempts > 0 OR {table}.crashes > 0)"  # spares a look for each
    return f"{named} OR ({tried} AND {failed})", [term.value] * 2


def _tag(term: Term, table: Table) -> Part:
    return "{table}.tags @> {}::jsonb", [json.dumps([term.value])]


def _replayed(term: Term, table: Table) -> Part:
    return (IS_REPLAYED if term.value else f"NOT {IS_REPLAYED}"), []


_SPECIAL: Final[dict[str, Callable[[Term, Table], Part]]] = {
    "id": _id,
    "state": _state,
    "statuses": _statuses,
    "types": _names("job_type"),
    "queues": _names("queue"),
    "error": _error,
    "group": _group,
    "groups": _group,
    "worker": _worker,
    "data": _data,
    "tag": _tag,
    "text": _text,
    "replayed": _replayed,
}
