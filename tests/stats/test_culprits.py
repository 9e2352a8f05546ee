"""Of the jobs that ran when a worker died, the one that did it is named, and no other:
by alerts, the overview and ``jobqueue health``."""

from __future__ import annotations

import pytest

from django_jobqueue import operations
from django_jobqueue.management.jobqueue import health_check
from django_jobqueue.metrics import cluster_samples
from django_jobqueue.models import ArchivedJob, Failure, FailureGroup, QueuedJob
from django_jobqueue.stats import conditions
from django_jobqueue.stats.health import Thresholds
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue import rescue
from django_jobqueue.store.reading import failure_stats
from django_jobqueue.store.reading.failure_stats import Crashes
from tests.stats.rows import ADD, SAY, concerns, queued, worker

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_schedules")]

POISON, WEBHOOK = ADD, SAY


def jobs_of(job_type: str, count: int) -> list[QueuedJob]:
    queued(count, job_type_id=job_type)
    return list(QueuedJob.objects.filter(job_type=job_type))


def die(*jobs: QueuedJob) -> None:
    """A worker is killed while it runs these jobs."""
    made = worker("web-1:7")
    QueuedJob.objects.filter(pk__in=[job.pk for job in jobs]).update(
        status="running", worker_id=made.pk, attempts=1
    )
    rescue.rescue(DjangoDatabase(), [made.pk], crashed=True, reason="killed")
    made.delete()


def named() -> dict[str, set[str]]:
    """The job types that each of the three blames."""
    judged = conditions.read(DjangoDatabase()).conditions
    wanted = health_check.Wanted(
        Thresholds(max_age=9e9, max_failed=100.0, min_workers=0), window=900.0
    )
    problems = health_check.read(wanted).problems
    return {
        "alert": {one.subject for one in judged if one.name == "crashing"},
        "overview": {one.query["q"] for one in concerns() if one.code == "crashing"},
        "health": {str(one.job_type) for one in problems if one.code == "many_crashes"},
    }


def texts() -> list[str]:
    judged = conditions.read(DjangoDatabase()).conditions
    return [one.text for one in judged if one.name == "crashing"]


def everywhere(*job_types: str) -> dict[str, set[str]]:
    return {name: set(job_types) for name in ("alert", "overview", "health")}


def test_the_job_that_kills_is_named_and_not_those_beside_it() -> None:
    (poison,), webhooks = jobs_of(POISON, 1), jobs_of(WEBHOOK, 8)
    die(poison, *webhooks[:4])
    die(poison, *webhooks[4:])
    assert named() == everywhere()  # two deaths may be chance
    poison.refresh_from_db()
    assert poison.quarantined
    die(poison)
    assert named() == everywhere(POISON)
    crashes = failure_stats.crashes(DjangoDatabase())
    assert crashes == {
        POISON: Crashes(by_culprits=3, took_along=8),
        WEBHOOK: Crashes(beside=8),
    }
    samples = {
        one.labels: one.value
        for one in cluster_samples.take(DjangoDatabase())
        if one.metric == "jobqueue_crashes"
    }
    assert samples[POISON, "culprit"] == 3
    assert samples[WEBHOOK, "suspect"] == 0
    assert samples[WEBHOOK, "beside"] == 8
    (text,) = texts()
    assert text == (
        f"Jobs of type {POISON} kill their workers: they crashed alone. 3 attempts "
        "ended so within the last two hours. 8 attempts at other jobs ended with them."
    )
    (over,) = ArchivedJob.objects.all()
    assert (over.pk, over.error_class) == (poison.pk, "jobqueue.PoisonJob")
    groups = dict(FailureGroup.objects.values_list("frame", "error_class"))
    classes = set(FailureGroup.objects.values_list("error_class", flat=True))
    assert groups.keys() == {POISON, WEBHOOK}
    assert classes == {"jobqueue.PoisonJob", "jobqueue.WorkerLost"}
    news = [one.message for one in concerns() if one.code == "new_failure"]
    assert news == [f"A job of type {POISON} kills its worker: it crashed alone."]


def test_a_culprit_that_is_ignored_still_clears_the_others() -> None:
    poisons, webhooks = jobs_of(POISON, 4), jobs_of(WEBHOOK, 4)
    for poison, webhook in zip(poisons, webhooks, strict=True):
        die(poison, webhook)
        QueuedJob.objects.filter(pk=poison.pk).update(quarantined=True)
        die(poison)
    assert named() == everywhere(POISON)
    ignored = FailureGroup.objects.filter(error_class="jobqueue.PoisonJob")
    operations.ignore([one.pk for one in ignored])
    held = FailureGroup.objects.filter(frame=POISON)
    operations.ignore([one.pk for one in held])
    assert named() == everywhere()


def test_while_nobody_knows_who_did_it_all_are_named_as_suspects() -> None:
    (job,), webhooks = jobs_of(POISON, 1), jobs_of(WEBHOOK, 6)
    for number in range(3):
        QueuedJob.objects.filter(pk=job.pk).update(quarantined=False, crashes=0)
        die(job, *webhooks[2 * number : 2 * number + 2])
    assert named() == everywhere(POISON, WEBHOOK)
    assert all("Whether one of them caused it is unknown." in one for one in texts())
    assert failure_stats.crashes(DjangoDatabase())[WEBHOOK] == Crashes(unexplained=3)
    assert Failure.objects.filter(job_type=WEBHOOK).count() == 6
