"""What workers are asked."""

from __future__ import annotations

from collections.abc import Sequence

from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.store import workers
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.triage.telling import tell


def ask_workers(ids: Sequence[int], what: str, *, by: str = "") -> list[int]:
    """Ask workers to ``drain``, ``resume``, ``stop`` or ``restart``; returns those
    alive.

    Drained workers claim nothing until they are resumed. Stopped and restarted ones
    finish what runs and end; a restarted one has a successor at once.
    """
    if what not in ("drain", "resume", "stop", "restart"):
        raise InvalidArguments(
            f"A worker can be asked to drain, resume, stop or restart, not {what!r}."
        )
    asked = workers.ask(DjangoDatabase(), ids, what)
    tell(f"{what} workers", by, len(asked), {"workers": asked})
    return asked
