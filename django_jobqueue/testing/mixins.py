"""The verbs as an object for pytest, and as mixins for unittest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django_jobqueue.embedded import EmbeddedWorker, worker
from django_jobqueue.enqueueing.immediate_jobs import memory
from django_jobqueue.testing.asserting import assert_enqueued, assert_not_enqueued
from django_jobqueue.testing.capturing import captured_jobs
from django_jobqueue.testing.clocks import clock
from django_jobqueue.testing.draining import adrain, drain
from django_jobqueue.testing.faults import crash, lose_lease
from django_jobqueue.testing.performing import aperform, perform


class JobQueueVerbs:
    """The things that a test does with jobs."""

    drain = staticmethod(drain)
    adrain = staticmethod(adrain)
    perform = staticmethod(perform)
    aperform = staticmethod(aperform)
    clock = staticmethod(clock)
    assert_enqueued = staticmethod(assert_enqueued)
    assert_not_enqueued = staticmethod(assert_not_enqueued)
    captured_jobs = staticmethod(captured_jobs)
    crash = staticmethod(crash)
    lose_lease = staticmethod(lose_lease)


class JobQueueTestMixin(JobQueueVerbs):
    """For Django's test cases: ``class OrderTests(JobQueueTestMixin, TestCase)``."""

    def setUp(self) -> None:
        """Forget the jobs that earlier tests ran at the enqueue."""
        super().setUp()  # type: ignore[misc]
        memory.clear()


class WorkerMixin:
    """For TransactionTestCase and LiveServerTestCase: a worker runs in threads while
    each test does. ``self.jobqueue_worker.wait_idle()`` waits for it.

    ``jobqueue_worker_options`` are those of ``django_jobqueue.worker()``.
    """

    jobqueue_worker: EmbeddedWorker
    jobqueue_worker_options: ClassVar[Mapping[str, Any]] = {}

    def setUp(self) -> None:
        """Start the worker; it is stopped before the tables are emptied."""
        super().setUp()  # type: ignore[misc]
        started = worker(**self.jobqueue_worker_options)
        self.jobqueue_worker = self.enterContext(started)  # type: ignore[attr-defined]
