"""Stores views of the admin's lists, which belong to the user of a name."""

from __future__ import annotations

from typing import Final

from django_jobqueue.store.connection import Database

SAVE: Final = """
INSERT INTO jobqueue_savedview AS held (list, name, query, owner, is_shared)
VALUES (%(list)s, %(name)s, %(query)s, %(owner)s, %(is_shared)s)
ON CONFLICT (owner, list, name) DO UPDATE
   SET query = excluded.query, is_shared = excluded.is_shared
RETURNING held.id
"""

# Nothing if the owner has another view of this name.
CHANGE: Final = """
UPDATE jobqueue_savedview AS held
   SET name = %(name)s, is_shared = %(is_shared)s
 WHERE held.id = %(id)s
   AND NOT EXISTS (SELECT FROM jobqueue_savedview AS other
                    WHERE other.owner = held.owner AND other.list = held.list
                      AND other.name = %(name)s AND other.id <> held.id)
RETURNING held.id
"""

DELETE: Final = """
DELETE FROM jobqueue_savedview AS held WHERE held.id = %(id)s RETURNING held.id
"""

# Others use those that are shared.
DELETE_PRIVATE: Final = """
DELETE FROM jobqueue_savedview AS held
 WHERE held.owner = %(owner)s AND NOT held.is_shared
RETURNING held.id
"""


def save(
    db: Database, *, list: str, name: str, query: str, owner: str, is_shared: bool
) -> int:
    """Keep a view, in place of the owner's view of this name; return its id."""
    values = {
        "list": list,
        "name": name,
        "query": query,
        "owner": owner,
        "is_shared": is_shared,
    }
    [(id,)] = db.fetch(SAVE, values)
    return int(id)


def change(db: Database, id: int, *, name: str, is_shared: bool) -> bool:
    """Rename it, share it or not; whether it was there, and the name was free."""
    return bool(db.fetch(CHANGE, {"id": id, "name": name, "is_shared": is_shared}))


def delete(db: Database, id: int) -> bool:
    """Delete it; whether it was there."""
    return bool(db.fetch(DELETE, {"id": id}))


def delete_private(db: Database, owner: str) -> int:
    """Delete the views that this user alone sees; return how many."""
    return len(db.fetch(DELETE_PRIVATE, {"owner": owner}))
