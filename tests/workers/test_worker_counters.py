"""What a worker publishes for metrics: the counts that go to the roll-ups."""

from __future__ import annotations

from django_jobqueue import job
from django_jobqueue.contrib.remote.endpoint_answers import (
    EndpointAnswer,
    endpoint_answers,
)
from django_jobqueue.domain.series import Series
from django_jobqueue.exceptions import Cancel, Fail, Retry, Snooze
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.processes.shared_value import SharedValue
from django_jobqueue.store.rollup import Count
from django_jobqueue.workers.completing.attempt_totals import ATTEMPTS, AttemptTotals
from django_jobqueue.workers.worker_main import WorkerCounters
from tests.support.hand_driven import HandDriven, Make
from tests.support.rows import counted

ENDS = {
    "succeeded": None,
    "failed": Fail("no"),
    "retried": Retry(after=3_600),
    "snoozed": Snooze(3_600),
    "cancelled": Cancel("no"),
}


def test_every_outcome_is_counted_and_none_is_lost_when_counts_are_handed_over(
    make_worker: Make,
) -> None:
    @job(name="metrics.end")
    def end(how: str) -> None:
        if (error := ENDS[how]) is not None:
            raise error

    driven, shared = make_worker(), SharedValue()
    counters = WorkerCounters(driven.worker, shared)

    def published() -> tuple[Series, Series]:
        series = driven.completer._series  # private: to refresh it at once
        series.refresh(at_once=True)
        counters.publish(at_once=True)
        _, counts, gauges = shared.read()
        return counts, gauges

    for times in (1, 2):
        for how in ENDS:
            end.enqueue(how=how)
        driven.work()
        counts, gauges = published()
        expected = {("default", "metrics.end", how): times for how in ENDS}
        assert counts[ATTEMPTS] == expected
        driven.worker.completer.write_counters()
        assert published()[0] == counts
    durations = counts["jobqueue_worker_attempt_duration_seconds"]["metrics.end",]
    delays = counts["jobqueue_worker_outcome_delay_seconds"][()]
    assert sum(durations[0]) == sum(delays[0]) == 2 * len(ENDS)
    assert counts["jobqueue_worker_claimed_jobs_total"] == {(): 2 * len(ENDS)}
    claims = counts["jobqueue_worker_claims_total"]
    assert claims["jobs",] >= 2
    assert gauges["jobqueue_worker_slots"] == {("thread",): 4, ("async",): 10}
    assert gauges["jobqueue_worker_unwritten_outcomes"] == {(): 0}
    assert counted("succeeded") == 2
    assert ArchivedJob.objects.count() == 6


def test_answers_of_endpoints_are_counted_by_class(make_worker: Make) -> None:
    driven, shared = make_worker(), SharedValue()
    counters = WorkerCounters(driven.worker, shared)
    name = f"endpoint-{id(driven)}"  # the process counts those of other tests, too
    for status in (200, 204, 503):
        endpoint_answers.add(name, EndpointAnswer.of_status(status, 0.1))
    endpoint_answers.take()
    counters.publish(at_once=True)
    _, counts, _gauges = shared.read()
    of_name = {
        labels[1]: count
        for labels, count in counts["jobqueue_worker_endpoint_answers_total"].items()
        if labels[0] == name
    }
    assert of_name == {"2xx": 2, "5xx": 1}


def test_an_outcome_that_is_refused_since_another_worker_has_the_job_is_counted(
    worker: HandDriven,
) -> None:
    @job(name="metrics.nothing")
    def nothing() -> None: ...

    counters = WorkerCounters(worker.worker, shared := SharedValue())
    enqueued = nothing.enqueue()
    worker.claim()
    worker.run()
    QueuedJob.objects.filter(id=enqueued.id).update(fence=1_000_000)
    worker.finish()
    counters.publish(at_once=True)
    assert shared.read()[1]["jobqueue_worker_refused_writes_total"] == {(): 1}


def test_only_so_many_label_sets_are_told_apart_and_queues_are_folded() -> None:
    totals = AttemptTotals(2, {"tenant-*": "tenant"})
    totals.add(
        Count("shop.mail", queue, succeeded=1)
        for queue in ("tenant-1", "mail", "tenant-2", "third", "fourth")
    )
    assert totals.series(())[ATTEMPTS] == {
        ("tenant", "shop.mail", "succeeded"): 2,
        ("mail", "shop.mail", "succeeded"): 1,
        ("(other)", "(other)", "succeeded"): 2,
    }
