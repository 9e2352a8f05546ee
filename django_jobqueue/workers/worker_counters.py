"""Publishes the counters and gauges of a worker, for metrics."""

from __future__ import annotations

from django_jobqueue.domain.endpoint_answers import endpoint_answers
from django_jobqueue.domain.series import Series
from django_jobqueue.processes.shared_value import SharedValue
from django_jobqueue.workers.process_counters import ProcessCounters
from django_jobqueue.workers.worker import Worker


class WorkerCounters:
    """Reads what the parts of a worker count anyway. Used by its main thread, before
    the worker starts and then again and again."""

    def __init__(self, worker: Worker, value: SharedValue) -> None:
        self._worker = worker
        self._completed = worker.completer.count_for_metrics()
        self._process = ProcessCounters(value)

    def publish(self, *, at_once: bool = False) -> None:
        """Publish them, once a second at most."""
        if self._process.is_due() or at_once:
            self._process.publish(self._counters(), self._gauges())

    def _counters(self) -> Series:
        claims, worker = self._worker.claims, self._worker
        source = worker.host_news or worker.listener
        return {
            **self._completed.latest,
            "jobqueue_worker_claims_total": {
                ("jobs",): claims.with_jobs,
                ("nothing",): claims.without,
            },
            "jobqueue_worker_claimed_jobs_total": {(): claims.jobs},
            "jobqueue_worker_claim_seconds_total": {(): claims.seconds},
            "jobqueue_worker_notifications_total": {
                (): 0 if source is None else source.received
            },
            "jobqueue_worker_endpoint_answers_total": endpoint_answers.totals,
        }

    def _gauges(self) -> Series:
        executors = self._worker.executors
        labels = {one: "async" if one.is_async else "thread" for one in executors}
        return {
            "jobqueue_worker_slots": {(labels[one],): one.slots for one in executors},
            "jobqueue_worker_busy_slots": {
                (labels[one],): len(one.running) for one in executors
            },
            "jobqueue_worker_unwritten_outcomes": {
                (): self._worker.completer.unwritten
            },
        }
