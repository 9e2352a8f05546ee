"""How idle workers learn of new jobs: from the INSERT where it is a transaction by
itself, else at the commit, by a trigger on the first job of its kind.

A transaction may commit long after the INSERT, when other workers are idle than were.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from django.db import connections

from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.notify import NOTIFY_IDLE, OUR_TURN

_ANNOUNCED: Final = "_jobqueue_announced"
NOTIFIED: Final = NOTIFY_IDLE.format(turn=OUR_TURN)
# In a longer transaction the same column tells whether it sees the past.
ISOLATION: Final = "current_setting('transaction_isolation')"
SEES_THE_PAST: Final = ("repeatable read", "serializable")


def is_alone(db: DjangoDatabase) -> bool:
    """Whether a statement that is run now is a transaction by itself."""
    return connections[db.alias].get_autocommit()


def announces(db: DjangoDatabase, kind: Hashable) -> bool:
    """Whether the trigger is to announce a job of this kind that is inserted now.

    Not if the statement is a transaction by itself, nor if a job of the kind that the
    same commit brings is announced.
    """
    wrapper = connections[db.alias]
    if wrapper.get_autocommit():
        return False
    return kind not in _announced(wrapper)


def announced(db: DjangoDatabase, kind: Hashable) -> None:
    """A job of this kind was inserted, and is announced."""
    wrapper = connections[db.alias]
    if wrapper.in_atomic_block:
        _announced(wrapper).add(kind)


def _announced(wrapper: Any) -> set[Hashable]:
    """The kinds of jobs that the commit of this transaction will announce.

    Django replaces the list of a transaction's hooks when it ends, and when a savepoint
    is rolled back, with which announced jobs may go.
    """
    kinds: set[Hashable]
    hooks, kinds = vars(wrapper).get(_ANNOUNCED, (None, set()))
    if hooks is not wrapper.run_on_commit or not wrapper.in_atomic_block:
        kinds = set()
        setattr(wrapper, _ANNOUNCED, (wrapper.run_on_commit, kinds))
    return kinds
