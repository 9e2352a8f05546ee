"""Who sends a request, and what they may do."""

from __future__ import annotations

from typing import Protocol

from django.http import HttpRequest


class Caller(Protocol):
    """Whoever sent a request."""

    @property
    def name(self) -> str:
        """The name in ``enqueued_by``, and in the audit; at most 150 characters."""
        ...

    def may(
        self,
        scope: str,
        *,
        job_type: str | None = None,
        queue: str | None = None,
        permission: str = "",
    ) -> bool:
        """Whether the caller may do this to jobs of this type and queue.

        ``scope`` is ``enqueue``, ``read``, ``read-data``, ``operate``, ``work``
        or ``types``.
        None stands for any job type or queue: the answer says whether there can be
        some. ``*`` stands for every one.
        ``permission`` is the one of Django that the admin asks for.
        """
        ...


class Authorizer(Protocol):
    """Knows callers by what a request has. ``HTTP_AUTH`` names yours."""

    challenge: str  # of the header WWW-Authenticate; empty if it has none

    def authenticate(self, request: HttpRequest) -> Caller | None:
        """The caller; None if the request has no credentials of this type. Raises
        Problem for wrong ones."""
        ...
