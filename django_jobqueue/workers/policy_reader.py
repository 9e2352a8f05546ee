"""Reads what operators say of job types, and learns of types that are new here."""

from __future__ import annotations

from collections.abc import Iterable

from django_jobqueue.registry import Registry
from django_jobqueue.store import job_types, workers
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.workers.policies import Policies


class PolicyReader:
    """Keeps the policies of a worker up to date."""

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

    def read(self) -> None:
        """Read the overrides of all job types, and learn of types whose module was
        imported meanwhile."""
        overrides = job_types.overrides(self._connection)
        self._policies.update(overrides)
        self._meet(overrides.keys() - set(self._policies.names))

    def _meet(self, strangers: Iterable[str]) -> None:
        found = [d for d in map(self._registry.get, sorted(strangers)) if d is not None]
        for declaration in found:
            self._policies.learn(declaration)
        if found:
            workers.learnt(self._connection, self._worker, self._policies.names)
