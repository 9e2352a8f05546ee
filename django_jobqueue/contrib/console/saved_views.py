"""Saved views of the admin's lists, which belong to the user of a name. What is done
with shared ones is recorded, without their queries, which may have personal data."""

from __future__ import annotations

from typing import Final

from django_jobqueue.operations.audit_log import record
from django_jobqueue.store.connection import DjangoDatabase

SAVE: Final = """
INSERT INTO jobqueue_console_savedview AS held (list, name, query, owner, is_shared)
VALUES (%(list)s, %(name)s, %(query)s, %(owner)s, %(is_shared)s)
ON CONFLICT (owner, list, name) DO UPDATE
   SET query = excluded.query, is_shared = excluded.is_shared
RETURNING held.id
"""

# Nothing if the owner has another view of this name.
CHANGE: Final = """
UPDATE jobqueue_console_savedview AS held
   SET name = %(name)s, is_shared = %(is_shared)s
 WHERE held.id = %(id)s
   AND NOT EXISTS (SELECT FROM jobqueue_console_savedview AS other
                    WHERE other.owner = held.owner AND other.list = held.list
                      AND other.name = %(name)s AND other.id <> held.id)
RETURNING held.id
"""

DELETE: Final = """
DELETE FROM jobqueue_console_savedview AS held WHERE held.id = %(id)s RETURNING held.id
"""

# Others use those that are shared.
DELETE_PRIVATE: Final = """
DELETE FROM jobqueue_console_savedview AS held
 WHERE held.owner = %(owner)s AND NOT held.is_shared
RETURNING held.id
"""


def save(*, list: str, name: str, query: str, by: str, is_shared: bool = False) -> int:
    """Keep a view of ``by``, in place of one of the same name; return its id."""
    values = {"list": list, "name": name, "query": query, "owner": by}
    [(id,)] = DjangoDatabase().fetch(SAVE, {**values, "is_shared": is_shared})
    _record("save view", by, list, name, is_shared=is_shared)
    return int(id)


def change(
    id: int, *, list: str, name: str, by: str, is_shared: bool, was_shared: bool
) -> bool:
    """Rename it, share it or not; whether it was there, and the name was free."""
    values = {"id": id, "name": name, "is_shared": is_shared}
    changed = bool(DjangoDatabase().fetch(CHANGE, values))
    _record(
        "change view", by, list, name, is_shared=changed and (is_shared or was_shared)
    )
    return changed


def delete(id: int, *, list: str, name: str, by: str, was_shared: bool) -> bool:
    """Delete it; whether it was there."""
    deleted = bool(DjangoDatabase().fetch(DELETE, {"id": id}))
    _record("delete view", by, list, name, is_shared=deleted and was_shared)
    return deleted


def forget(owner: str) -> int:
    """Delete the views that nobody but this user sees; return how many."""
    return len(DjangoDatabase().fetch(DELETE_PRIVATE, {"owner": owner}))


def _record(verb: str, by: str, list: str, name: str, *, is_shared: bool) -> None:
    if is_shared:
        record(verb, by, 1, {"list": list, "view": name})
