"""Tags are where a job is: whoever returns a job returns them."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection
from django.test import override_settings

from django_jobqueue import Job, enqueue, get_job, operations, replay, wait
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.testing import assert_enqueued
from tests.sample import jobs
from tests.support.hand_driven import HandDriven

TAGS = ("a", "ü b")
ID = "019aa2f0-0000-7000-8000-000000000001"


def tagged(worker: HandDriven) -> Job:
    return jobs.add.using(tags=TAGS).enqueue(1)


def over(worker: HandDriven) -> Job:
    made = tagged(worker)
    worker.work()
    return made


def found_by_its_tag(made: Job) -> Job:
    found = assert_enqueued(jobs.add, tags=["a"])
    assert found.id == made.id
    return found


WAYS: dict[str, Callable[[HandDriven], Job]] = {
    "enqueue": tagged,
    "by name": lambda _: enqueue("tests.sample.add", {"a": 1}, tags=TAGS),
    "once": lambda _: jobs.add.using(tags=TAGS, id=ID).enqueue(1),
    "unique": lambda _: jobs.add_alone.using(tags=TAGS).enqueue(1),
    "many": lambda _: get_job(jobs.add.using(tags=TAGS).enqueue_many([{"a": 1}])[0]),
    "get_job, queued": lambda worker: get_job(tagged(worker).id),
    "get_job, over": lambda worker: get_job(over(worker).id),
    "wait": lambda worker: wait(over(worker).id, timeout=10),
    "replay": lambda worker: replay(over(worker).id),
    "edit data": lambda worker: operations.edit_data(tagged(worker).id, {"a": 2}),
    "assert_enqueued": lambda worker: found_by_its_tag(tagged(worker)),
}


def test_a_job_that_is_returned_has_its_tags(worker: HandDriven) -> None:
    found = {}
    for name, way in WAYS.items():
        found[name] = way(worker).tags
        QueuedJob.objects.all().delete(), ArchivedJob.objects.all().delete()
    assert found == dict.fromkeys(WAYS, TAGS)
    assert jobs.add.enqueue(1).tags == get_job(jobs.add.enqueue(1).id).tags == ()
    with override_settings(JOBQUEUE={"MODE": "immediate"}):
        made = jobs.add.using(tags=TAGS).enqueue(1)
        assert made.tags == get_job(made.id).tags == TAGS


def test_what_plain_sql_wrote_does_no_harm(worker: HandDriven) -> None:
    made = jobs.add.enqueue(1)
    read = {'"a"': (), "{}": (), "null": (), '["a", 1, null]': ("a",)}
    for written, tags in read.items():
        with connection.cursor() as cursor:
            cursor.execute("UPDATE jobqueue_queuedjob SET tags = %s::jsonb", [written])
        assert get_job(made.id).tags == tags
        assert QueuedJob.objects.get().pk == made.id
