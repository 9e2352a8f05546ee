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
        self._refused: set[str] = set()  # job types that nobody vouches for

    def read(self) -> None:
        """Read the overrides of all job types, and look at those that are unknown."""
        overrides = job_types.overrides(self._connection)
        self._policies.update(overrides)
        if self._registry.finders:
            self._meet(overrides.keys() - self._refused - set(self._policies.names))

    def _meet(self, strangers: Iterable[str]) -> None:
        """Learn to run those that a finder vouches for, by what their rows say."""
        names = sorted(strangers)
        handlers = job_types.handlers(self._connection, names) if names else {}
        for name, handler in handlers.items():
            declaration = self._registry.find(name, handler)
            if declaration is None:
                self._refused.add(name)
            else:
                self._policies.learn(declaration)
        if not self._refused.issuperset(names):
            workers.learnt(self._connection, self._worker, self._policies.names)
