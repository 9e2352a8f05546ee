"""Leases by name: what only one process at a time may do, with a fence.

``lease``, ``try_lease`` and ``alease`` take one; ``HeldLease`` is what they give. Each
is in the database, on a connection of its own, or in memory where a project's tests run
without it.
"""

from typing import TYPE_CHECKING

from django_jobqueue.text.lazy_names import lazily

if TYPE_CHECKING:
    from django_jobqueue.contrib.leases.held_lease import HeldLease
    from django_jobqueue.contrib.leases.take_away import take_away_leases
    from django_jobqueue.contrib.leases.taking import alease, lease, try_lease

__all__ = ["HeldLease", "alease", "lease", "take_away_leases", "try_lease"]

__getattr__, __dir__ = lazily(
    globals(),
    {
        "HeldLease": f"{__name__}.held_lease",
        "take_away_leases": f"{__name__}.take_away",
        **dict.fromkeys(("alease", "lease", "try_lease"), f"{__name__}.taking"),
    },
)
