"""Reads what operators say of job types, and learns of types that are new here."""

from __future__ import annotations

from collections.abc import Iterable

from django_jobqueue.registry import Registry
from django_jobqueue.store import job_types, workers
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.workers.policies import Policies


class PolicyReader:
    """Keeps the policies of a worker up to date, and what its row says of them."""

    def __init__(
        self,
        worker: int,
        connection: OwnConnection,
        policies: Policies,
        registry: Registry,
    ) -> None:
        self._worker = worker
        self._connection = connection
        self._policies = policies
        self._registry = registry
        self._written = policies.names  # in the worker's row
        self._refused: set[str] = set()  # job types that nobody vouches for

    def read(self) -> None:
        """Read the overrides of all job types, and look at those that are unknown.
        Raises StoreUnavailable."""
        overrides = job_types.overrides(self._connection)
        self._policies.update(overrides)
        names = self._policies.names
        if self._registry.finders:
            self._meet(overrides.keys() - self._refused - set(names))
            names = self._policies.names
        if names != self._written:
            workers.learnt(self._connection, self._worker, names)
            self._written = names

    def _meet(self, strangers: Iterable[str]) -> None:
        """Ask the finders for them; who vouches for one declares it."""
        names = sorted(strangers)
        handlers = job_types.handlers(self._connection, names) if names else {}
        for name, handler in handlers.items():
            if self._registry.find(name, handler) is None:
                self._refused.add(name)
