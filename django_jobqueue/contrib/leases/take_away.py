"""Takes leases from their holders: the function, and its verb."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.db import connections

from django_jobqueue.contrib.leases import lease_rows
from django_jobqueue.contrib.leases.held_lease import memory
from django_jobqueue.contrib.leases.taking import check_name
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.databases import POSTGRESQL
from django_jobqueue.domain.ids import several
from django_jobqueue.operations.audit_log import record
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.verbs.declarations import On, Verb


@sync_only()
def take_away_leases(
    names: str | Iterable[str], *, using: str | None = None, by: str = ""
) -> list[str]:
    """Take leases from their holders, so that others may have them; returns the names
    of those that were held.

    ``names`` is one name, or several. The fence of each grows. Its holder notices at
    its next renewal; an open transaction of ``HeldLease.atomic()`` ends first. Raises
    InvalidArguments.
    """
    wanted = list(dict.fromkeys(several(names)))
    for name in wanted:
        check_name(name)
    taken = memory.take_away(wanted)
    db = DjangoDatabase(using)
    if connections[db.alias].vendor == POSTGRESQL:
        others = [name for name in wanted if name not in taken]
        taken += lease_rows.take_away(db, others)
    record("take away leases", by, len(taken), {"leases": taken}, using=using)
    return taken


TAKE_AWAY: Final = Verb(
    "take-away",
    take_away_leases,
    on=On.LEASE,
    right="jobqueue_leases.take_away_lease",
    summary="Others may take it at once, with a greater fence; its holder learns of it "
    "with its next renewal.",
    done="taken away",
    not_done="The lease {name!r} was not held.",
    audit="take away leases",
)
