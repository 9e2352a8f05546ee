"""The senders of requests, and their rights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from django.http import HttpRequest


class Caller(Protocol):
    """The sender of a request."""

    @property
    def name(self) -> str:
        """The name in ``enqueued_by``, and in the audit; at most 150 characters."""
        ...

    @property
    def identity(self) -> str:
        """Who it is, whatever the name: the same one has the same remote workers and
        idempotency keys; at most 150 characters."""
        ...

    @property
    def job_types(self) -> Sequence[str]:
        """The job types that the caller has to do with: names, or patterns such as
        ``shop.*``. None is every one."""
        ...

    @property
    def queues(self) -> Sequence[str]:
        """The queues, likewise."""
        ...

    def may(self, scope: str, permission: str) -> bool:
        """True if the caller may do this to jobs of these job types and queues.

        ``scope`` is ``enqueue``, ``read``, ``read-data``, ``operate``, ``work``
        or ``types``, and ``permission`` the one of Django that the admin asks for.
        """
        ...


class Authorizer(Protocol):
    """Knows callers by what a request has. ``HTTP_AUTH`` names yours."""

    challenge: str  # of the header WWW-Authenticate; empty if it has none

    def authenticate(self, request: HttpRequest) -> Caller | None:
        """The caller; None if the request has no credentials of this type. Raises
        Problem for wrong ones."""
        ...


def identity_of(caller: Caller) -> str:
    """Who it is among all callers: a token is no user, nor a caller of a project's own
    class, whatever that is called."""
    its_type = type(caller)
    return f"{its_type.__module__}.{its_type.__qualname__}:{caller.identity}"
