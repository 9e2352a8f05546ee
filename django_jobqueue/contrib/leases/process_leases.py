"""The leases of this process in the database: one connection, and one thread that
renews them, from the first lease to the last."""

from __future__ import annotations

import logging
import os
import threading
from typing import Final
from uuid import UUID

from django_jobqueue.contrib.leases import lease_rows
from django_jobqueue.contrib.leases.held_lease import TAKEN_AWAY, HeldLease
from django_jobqueue.contrib.leases.lease_rows import Answer, Beat, Claimant
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.loop import FOREVER, Loop
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.notify import News, notify

logger = logging.getLogger("django_jobqueue.leases")

RENEWALS: Final = 3  # in the time of a lease
AGAIN_AFTER: Final = 0.25  # seconds, while somebody has locked the row of a lease
OF_LEASE: Final = 10  # tries in the time of a lease, while the database fails


class RenewedLease(HeldLease):
    """A lease in the database. It is lost when a renewal is refused, or when none has
    succeeded for its whole time by the clock of this machine."""

    def __init__(
        self, claimant: Claimant, fence: int, taken: float, renewer: LeaseRenewer
    ) -> None:
        super().__init__(claimant.name, fence, claimant.ttl)
        self.token = claimant.token
        self.renewed_at = taken  # lease_time() before the statement
        self._lost = ""
        self._renewer = renewer

    @property
    def beat(self) -> Beat:
        """The arguments of its renewal."""
        return Beat(self.name, self.token, self.ttl)

    def is_to_be_renewed(self) -> bool:
        """True if it is held, as far as is known."""
        return not (self._is_released or self._loss())

    def lose(self, reason: str) -> None:
        """It is lost; the first reason stays."""
        self._lose(reason)

    def _loss(self) -> str:
        if not self._lost and lease_time() - self.renewed_at >= self.ttl:
            self._lose(f"it could not be renewed for {self.ttl:g} s")
        return self._lost

    def _lose(self, reason: str) -> None:
        if not self._lost:
            self._lost = reason
            logger.warning(
                "The lease %r (fence %d) is lost: %s", self.name, self.fence, reason
            )

    def _lock(self) -> bool:
        return lease_rows.lock(DjangoDatabase(), self.name, self.token)

    def _release(self) -> None:
        self._renewer.release(self)


class LeaseRenewer(Loop):
    """Renews leases after every third of their time, all in one statement.

    Whoever takes a lease uses the same connection, one after the other.
    """

    name = "lease renewer"

    def __init__(self) -> None:
        super().__init__()
        self._connection = OwnConnection("leases", pooled=True)
        self._database = threading.Lock()  # for the connection
        self._lock = threading.Lock()  # for the leases
        self._held: dict[UUID, RenewedLease] = {}
        self._again_at: dict[UUID, float] = {}  # lease_time(), of locked rows
        self.users = 0  # that hold a lease, or wait for one

    def tick(self) -> float:
        """Renew the leases, if one of them is due."""
        with self._lock:
            held = [lease for lease in self._held.values() if lease.is_to_be_renewed()]
        began = lease_time()
        if not held:
            return FOREVER
        if began >= min(map(self._due_at, held)):
            self._renew(held, began)
        due = [self._due_at(lease) for lease in held if lease.is_to_be_renewed()]
        return max(0.0, min(due, default=FOREVER) - lease_time())

    def _due_at(self, lease: RenewedLease) -> float:
        """lease_time() of its next renewal."""
        due = lease.renewed_at + lease.ttl / RENEWALS
        return max(due, self._again_at.get(lease.token, 0.0))

    def _renew(self, held: list[RenewedLease], began: float) -> None:
        """Raises StoreUnavailable."""
        try:
            with self._database:
                renewed = lease_rows.renew(
                    self._connection, [lease.beat for lease in held]
                )
        except StoreUnavailable as error:
            shortest = min(lease.ttl for lease in held)
            error.retry_in = min(error.retry_in, shortest / OF_LEASE)
            raise
        self._again_at = {
            token: began + AGAIN_AFTER
            for token, was_renewed in renewed.items()
            if not was_renewed
        }
        for lease in filter(RenewedLease.is_to_be_renewed, held):
            if lease.token not in renewed:
                lease.lose(TAKEN_AWAY)
            elif renewed[lease.token]:
                lease.renewed_at = began

    def take(self, claimant: Claimant) -> tuple[RenewedLease | None, Answer]:
        """Try to take a lease. Raises StoreUnavailable, and RuntimeError if there is no
        room for a thread."""
        taken = lease_time()
        with self._database:
            answer = lease_rows.take(self._connection, claimant)
        if not answer.fence:
            return None, answer
        lease = RenewedLease(claimant, answer.fence, taken, self)
        enter(self)
        try:
            self._add(lease)
        except RuntimeError:
            lease.release()
            raise
        return lease, answer

    def wait_for(self, name: str) -> None:
        """Have waiters notified when this lease is free. Raises StoreUnavailable."""
        with self._database:
            lease_rows.wait_for(self._connection, name)

    def try_listening(self) -> None:
        """Send something that a listener of this process hears, unless it is behind a
        pooler. Raises StoreUnavailable."""
        with self._database:
            notify(self._connection, News.HELLO, os.getpid())

    def release(self, lease: RenewedLease) -> None:
        """Let others have this lease, and leave."""
        with self._lock:
            self._held.pop(lease.token, None)
        try:
            with self._database:
                lease_rows.release(self._connection, lease.name, lease.token)
        except StoreUnavailable as error:
            logger.warning(
                "The lease %r could not be released, so it lapses within %g s: %s",
                lease.name,
                lease.ttl,
                error,
            )
        finally:
            leave(self)

    def holds(self, name: str, owner: object) -> bool:
        """True if this thread or task holds the lease of this name."""
        with self._lock:
            held = list(self._held.values())
        return any(
            lease.name == name and lease.owner is owner and lease.is_to_be_renewed()
            for lease in held
        )

    def end(self) -> None:
        """Nobody uses it any more: let the connection go."""
        if self.has_started and not self._stop_requested.is_set():
            self.stop(0)  # its thread does so
        else:
            self.close()

    def close(self) -> None:
        """Let the connection go."""
        with self._database:
            self._connection.close()

    def _add(self, lease: RenewedLease) -> None:
        with self._lock:
            self._held[lease.token] = lease
            if not self.has_started:
                self.start()
        self.wake()


# The one of this process, while anybody needs it.
_lock = threading.Lock()
_renewer: LeaseRenewer | None = None
_of_parents: list[LeaseRenewer] = []  # or their connections would be closed


def enter(renewer: LeaseRenewer | None = None) -> LeaseRenewer:
    """The renewer of this process, or this one, for somebody who then has to leave."""
    global _renewer
    with _lock:
        if renewer is None:
            renewer = _renewer = _renewer or LeaseRenewer()
        renewer.users += 1
        return renewer


def leave(renewer: LeaseRenewer) -> None:
    """Somebody needs it no more: the last one ends its thread and connection."""
    global _renewer
    with _lock:
        renewer.users -= 1
        if renewer.users > 0:
            return
        if renewer is _renewer:
            _renewer = None
    renewer.end()


def _reset_after_fork() -> None:
    """In the child of a fork: the thread does not exist there, and the leases are the
    parent's."""
    global _lock, _renewer
    _lock = threading.Lock()
    if _renewer is not None:
        _of_parents.append(_renewer)
        _renewer = None


os.register_at_fork(after_in_child=_reset_after_fork)
