"""Writes what the code declares to the database: job types, and what rooms
declare."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from django_jobqueue import rooms
from django_jobqueue.domain.registry import registry
from django_jobqueue.processes.loop import FOREVER, Loop
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.errors import in_a_line
from django_jobqueue.store.partial_batches import apply_in_parts

logger = logging.getLogger("django_jobqueue.maintenance")

AGAIN_AFTER: Final = 5.0  # seconds; what is locked keeps its old row for so long

Step = tuple[str, Sequence[Any], Callable[[Sequence[Any]], object]]


class Declarer(Loop):
    """Declares later what another transaction has locked, or the database refuses, so
    that it keeps no host from starting."""

    name = "declarer"

    def __init__(self) -> None:
        super().__init__()
        self.connection: OwnConnection | None = None  # for later rounds
        self._is_done = False
        self._logged: set[str] = set()

    def tick(self) -> float:
        """Declare what is left."""
        if not self._is_done and self.connection is not None:
            self.declare(self.connection)
        return FOREVER if self._is_done else AGAIN_AFTER

    def declare(self, db: OwnConnection) -> None:
        """Declare what can be. Raises StoreUnavailable."""
        done = [self._is_declared(db, step) for step in _steps(db)]
        self._is_done = all(done)

    def _is_declared(self, db: OwnConnection, step: Step) -> bool:
        what, items, write = step
        left = apply_in_parts(db, items, write, brief=True)
        for one in left:
            names = ", ".join(getattr(item, "name", str(item)) for item in one.items)
            line = f"{what} {names}: {in_a_line(one.error)}"
            if line not in self._logged:
                self._logged.add(line)
                logger.warning(
                    "Cannot declare %s. The database's values hold until then; trying "
                    "again every %g s",
                    line,
                    AGAIN_AFTER,
                )
        return not left


def _steps(db: OwnConnection) -> list[Step]:
    return [
        ("job types", list(registry), partial(job_types.declare, db)),
        *(step for declared in rooms.offered("declared") for step in declared(db)),
    ]
