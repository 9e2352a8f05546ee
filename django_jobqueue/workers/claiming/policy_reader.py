"""Reads what operators say of job types, and learns of types that are new here."""

from __future__ import annotations

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store import job_types, worker_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.errors import is_contended
from django_jobqueue.store.halving import BRIEF
from django_jobqueue.workers.claiming.policies import Policies


class PolicyReader:
    """Keeps the policies of a worker up to date, and what its row says of them."""

    def __init__(
        self, worker: int, connection: OwnConnection, policies: Policies
    ) -> None:
        self._worker = worker
        self._connection = connection
        self._policies = policies
        self._written = policies.names  # in the worker's row

    def read(self) -> None:
        """Read the overrides of all job types, and write which ones are run here if a
        module was imported meanwhile. Raises StoreUnavailable."""
        self._policies.update(job_types.overrides(self._connection))
        names = self._policies.names
        if names != self._written:
            self._write(names)

    def _write(self, names: list[str]) -> None:
        """In the worker's row; if that is locked, after the next look."""
        try:
            with self._connection.patience(BRIEF):
                worker_rows.learnt(self._connection, self._worker, names)
        except StoreUnavailable as error:
            if not is_contended(error):
                raise
        else:
            self._written = names
