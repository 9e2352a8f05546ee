"""Jobs in several databases: by the setting, by the routers, by ``using``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction
from django.test import override_settings

import django_jobqueue
from django_jobqueue import (
    AlreadyArchived,
    DuplicateJob,
    InvalidArguments,
    JobNotFound,
    enqueue,
    get_job,
    operations,
)
from django_jobqueue.conf import conf
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.testing import assert_enqueued, drain
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.second_database import SECOND, second  # noqa: F401
from tests.support.tables import differing, refusal

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", SECOND])


class JobsAreSecond:
    """A router that has jobs in the second database."""

    def db_for_write(self, model: type, **hints: Any) -> str | None:
        return SECOND if model is QueuedJob else None


class JobsAreNowhere:
    """A router with a mistake."""

    def db_for_write(self, model: type, **hints: Any) -> str | None:
        return "secnd"


def counts() -> tuple[int, int]:
    """How many jobs wait in the first and in the second database."""
    return QueuedJob.objects.using("default").count(), (
        QueuedJob.objects.using(SECOND).count()
    )


def test_the_setting_wins_over_the_routers_and_these_over_the_default() -> None:
    with override_settings(JOBQUEUE={}):
        assert conf.database == DjangoDatabase().alias == "default"
    with override_settings(DATABASE_ROUTERS=[JobsAreSecond()]):
        made = jobs.add.enqueue(1)
        jobs.add.enqueue_many([{"a": 2}])
        assert conf.database == SECOND
        assert get_job(made.id).data == {"a": 1}
        assert counts() == (0, 2)
        with override_settings(JOBQUEUE={"DATABASE": "default"}):
            jobs.add.enqueue(1)
    assert counts() == (1, 2)


def test_an_enqueue_names_its_database_and_belongs_to_its_transaction() -> None:
    jobs.add.using(using=SECOND).enqueue(1)
    enqueue("tests.sample.add", {"a": 2}, using=SECOND)
    jobs.add.using(using=SECOND).enqueue_many([{"a": 3}])
    django_jobqueue.enqueue_many("tests.sample.add", [{"a": 4}], using=SECOND)
    operations.enqueue("tests.sample.add", {"a": 5}, using=SECOND)
    jobs.add.enqueue(6)
    assert counts() == (1, 5)
    assert JobType.objects.using(SECOND).filter(name="tests.sample.add").exists()
    with transaction.atomic(using=SECOND):
        jobs.add.using(using=SECOND).enqueue(1)
        jobs.add.using(using=SECOND).enqueue_many([{"a": 2}])
        jobs.add.enqueue(3)
        transaction.set_rollback(True, using=SECOND)
    assert counts() == (2, 5)


def test_duplicates_ids_and_followers_are_looked_for_there() -> None:
    there = jobs.add_alone.using(using=SECOND)
    jobs.add_alone.enqueue(1)
    first = there.enqueue(1)
    with pytest.raises(DuplicateJob) as caught:
        there.enqueue(1)
    assert caught.value.job == first
    with pytest.raises(DuplicateJob):
        there.enqueue_many([{"a": 1}])
    assert counts() == (1, 1)
    made = jobs.followed.using(using=SECOND).enqueue()
    operations.cancel([made.id], using=SECOND)
    with pytest.raises(AlreadyArchived):
        jobs.followed.using(using=SECOND, id=made.id).enqueue()
    follower = QueuedJob.objects.using(SECOND).exclude(follows=None).get()
    assert follower.data == {"job": str(made.id), "status": "cancelled"}
    jobs.followed.using(id=made.id).enqueue()


VERBS: list[Callable[[Any], Any]] = [
    lambda id: operations.run_now([id], using=SECOND),
    lambda id: operations.reschedule([id], priority=3, using=SECOND),
    lambda id: operations.allow_attempts([id], 9, using=SECOND),
    lambda id: operations.edit_data(id, {"a": 2}, using=SECOND),
    lambda id: operations.cancel([id], using=SECOND).archived,
    lambda id: operations.replay(id, using=SECOND),
    lambda id: operations.replay_many([id], skip_replayed="none", using=SECOND),
    lambda id: operations.prune_jobs([id], using=SECOND),
]


def test_every_verb_acts_in_the_database_that_it_is_told() -> None:
    made = jobs.add.using(using=SECOND).enqueue(1)
    with pytest.raises(JobNotFound):
        get_job(made.id)
    assert get_job(made.id, using=SECOND).id == made.id
    for verb in VERBS:
        assert verb(made.id)
    assert not ArchivedJob.objects.using(SECOND).exists()
    other = jobs.add.using(using=SECOND).enqueue(1)
    assert operations.fail([other.id], reason="no", using=SECOND) == [other.id]
    assert counts() == (0, 2)


def test_job_types_are_paused_and_overridden_there() -> None:
    jobs.add.using(using=SECOND).enqueue(1)
    operations.pause(["tests.sample.add"], using=SECOND)
    operations.override("tests.sample.add", priority=7, using=SECOND)
    there = JobType.objects.using(SECOND).get(name="tests.sample.add")
    here = JobType.objects.get(name="tests.sample.add")
    assert (there.paused, there.priority_override) == (True, 7)
    assert (here.paused, here.priority_override) == (False, None)
    operations.resume(["tests.sample.add"], using=SECOND)
    there.refresh_from_db()
    assert not there.paused


def test_a_worker_serves_that_of_its_settings(
    make_worker: Callable[..., HandDriven],
) -> None:
    there = jobs.add.using(using=SECOND).enqueue(1)
    here = jobs.add.enqueue(2)
    with override_settings(JOBQUEUE={"DATABASE": SECOND}):
        worker = make_worker()
        worker.work()
        assert get_job(there.id).result == 1
        worker.close()
    assert get_job(here.id).status == "queued"


@pytest.mark.parametrize("commits", [False, True])
def test_so_do_the_helpers_of_tests(commits: bool) -> None:
    hour = timedelta(hours=1)
    with override_settings(JOBQUEUE={"DATABASE": SECOND}), ExitStack() as stack:
        if not commits:
            stack.enter_context(transaction.atomic(using=SECOND))
        transaction.on_commit(lambda: jobs.add.enqueue(1))
        jobs.add.using(run_after=hour).enqueue(2)
        assert [ran.verb for ran in drain(until=2 * hour)] == ["succeed"] * 2
        assert_enqueued(jobs.add, data={"a": 2}, status="succeeded")
    assert counts() == (0, 0)


def test_an_unknown_alias_is_refused_with_the_nearest(lite: None) -> None:
    text = "using must be an alias of DATABASES, not 'secnd'. Did you mean 'second'?"
    calls: list[Callable[[], Any]] = [
        lambda: jobs.add.using(using="secnd"),
        lambda: enqueue("tests.sample.add", {"a": 1}, using="secnd"),
        lambda: operations.cancel([], using="secnd"),
    ]
    ask = partial(refusal, InvalidArguments)
    assert differing([(call, text) for call in calls], ask) == []
    text = "using must be a PostgreSQL database; 'lite' is sqlite."
    assert refusal(InvalidArguments, lambda: jobs.add.using(using="lite")) == text


@pytest.fixture
def lite() -> Iterator[None]:
    """An alias whose database is SQLite."""
    connections.settings["lite"] = {
        **connections.settings["default"],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": ":memory:",
    }
    yield
    del connections["lite"]
    del connections.settings["lite"]


def test_a_wrong_setting_is_told_at_the_first_use(lite: None) -> None:
    for alias, problem in (
        ("lite", "must be a PostgreSQL database; 'lite' is sqlite."),
        ("defualt", "must be an alias of DATABASES, not 'defualt'. Did you mean 'de"),
    ):
        with override_settings(JOBQUEUE={"DATABASE": alias}):
            text = refusal(ImproperlyConfigured, lambda: jobs.add.enqueue(1))
        assert text.startswith(
            "The database of the jobs, which JOBQUEUE['DATABASE'] or else "
            f"DATABASE_ROUTERS name, {problem}"
        )
    with override_settings(DATABASE_ROUTERS=[JobsAreNowhere()]):
        text = refusal(ImproperlyConfigured, lambda: jobs.add.enqueue(1))
    assert "not 'secnd'" in text
