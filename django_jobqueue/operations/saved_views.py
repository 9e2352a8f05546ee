"""Saved views of the admin's lists. What is done with shared ones is recorded, without
their queries, which may have personal data."""

from __future__ import annotations

from django_jobqueue.operations.audit_log import record
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.control import saved_views


def save(*, list: str, name: str, query: str, by: str, is_shared: bool = False) -> int:
    """Keep a view of ``by``, in place of one of the same name; return its id."""
    db = DjangoDatabase()
    id = saved_views.save(
        db, list=list, name=name, query=query, owner=by, is_shared=is_shared
    )
    _record("save view", by, list, name, is_shared=is_shared)
    return id


def change(
    id: int, *, list: str, name: str, by: str, is_shared: bool, was_shared: bool
) -> bool:
    """Rename it, share it or not; whether it was there, and the name was free."""
    changed = saved_views.change(DjangoDatabase(), id, name=name, is_shared=is_shared)
    _record(
        "change view", by, list, name, is_shared=changed and (is_shared or was_shared)
    )
    return changed


def delete(id: int, *, list: str, name: str, by: str, was_shared: bool) -> bool:
    """Delete it; whether it was there."""
    deleted = saved_views.delete(DjangoDatabase(), id)
    _record("delete view", by, list, name, is_shared=deleted and was_shared)
    return deleted


def forget(owner: str) -> int:
    """Delete the views that nobody but this user sees; return how many."""
    return saved_views.delete_private(DjangoDatabase(), owner)


def _record(verb: str, by: str, list: str, name: str, *, is_shared: bool) -> None:
    if is_shared:
        record(verb, by, 1, {"list": list, "view": name})
