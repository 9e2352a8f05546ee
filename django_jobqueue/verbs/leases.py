"""The verb of leases."""

from __future__ import annotations

from typing import Final

from django_jobqueue import operations
from django_jobqueue.verbs.declarations import On, Verb

TAKE_AWAY: Final = Verb(
    "take-away",
    operations.take_away_leases,
    on=On.LEASE,
    right="take_away_lease",
    summary="Others may take it at once, with a greater fence; its holder learns of it "
    "with its next renewal.",
    done="taken away",
    not_done="The lease {name!r} was not held.",
    audit="take away leases",
)
