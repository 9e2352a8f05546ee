"""Leases by name: what only one process at a time may do, with a fence.

``lease``, ``try_lease`` and ``alease`` take one; ``HeldLease`` is what they give. Each
is in the database, on a connection of its own, or in memory where a project's tests run
without it.
"""

from django_jobqueue.leases.held_lease import HeldLease
from django_jobqueue.leases.taking import alease, lease, try_lease

__all__ = ["HeldLease", "alease", "lease", "try_lease"]
