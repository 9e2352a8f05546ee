"""What one enqueue can say of its jobs, besides when and where."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from datetime import timezone as fixed
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import override_settings
from django.utils import timezone, translation

from django_jobqueue import (
    InvalidArguments,
    UnknownJobType,
    aenqueue_many,
    enqueue,
    enqueue_many,
    job,
    operations,
)
from django_jobqueue.domain.registry import registry
from django_jobqueue.models import JobType
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued

pytestmark = pytest.mark.django_db(transaction=True)
CAPTURE = {"CAPTURE": ["language", "time_zone"]}


def nothing() -> None: ...


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(InvalidArguments) as caught:
        call()
    return str(caught.value)


def test_metadata_travel_with_the_job(worker: HandDriven) -> None:
    metadata = {"trace": "00-ab", "tenant": {"id": 7, "names": ["a", None]}}
    made = jobs.add.using(metadata=metadata).enqueue(1)
    enqueue("tests.sample.add", {"a": 2}, metadata=metadata)
    jobs.add.using(metadata=metadata).enqueue_many([{"a": 3}])
    jobs.add.using(metadata={}).enqueue(4)

    assert made.metadata == metadata
    assert [row.metadata for row in queued()] == [metadata] * 3 + [None]
    worker.work()
    assert {str(row.metadata) for row in archived()} == {str(metadata), "None"}


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ([1], "metadata must be a dict, not [1]."),
        ("x", "metadata must be a dict, not 'x'."),
        ({"a": (1,)}, "metadata['a'] is a tuple, which JSON brings back as a list; pa"),
        ({1: 2}, "metadata has the key 1; JSON keys are strings."),
        ({"a": {"b": "x\x00"}}, "metadata['a']['b'] has a NUL character, which Postgr"),
        ({"a": "x" * 1_000_000}, "metadata is 1,000,008 bytes of JSON; at most 1,000"),
    ],
)
def test_metadata_that_would_not_survive_are_refused(
    metadata: Any, problem: str
) -> None:
    assert refused(lambda: jobs.add.using(metadata=metadata)).startswith(problem)


def test_metadata_are_as_they_were_given() -> None:
    metadata = {"a": 1}
    handler = jobs.add.using(metadata=metadata)
    metadata["a"] = 2
    assert handler.enqueue(1).metadata == {"a": 1}


def test_nothing_is_captured_unless_it_is_asked_for() -> None:
    with translation.override("de"), timezone.override("Asia/Tokyo"):
        assert jobs.add.enqueue(1).metadata is None


def test_the_language_and_the_time_zone_of_the_caller_are_kept() -> None:
    with (
        override_settings(JOBQUEUE=CAPTURE),
        translation.override("de"),
        timezone.override(ZoneInfo("Asia/Tokyo")),
    ):
        made = jobs.add.enqueue(1)
        jobs.add.enqueue_many([{"a": 2}])
        enqueue("tests.sample.add", {"a": 3})
    captured = {"language": "de", "time_zone": "Asia/Tokyo"}
    assert made.metadata == captured
    assert [row.metadata for row in queued()] == [captured] * 3


def test_a_handler_says_itself_what_is_captured() -> None:
    try:
        handler = job(name="verbs.captured", capture=("language",))(nothing)
        other = job(name="verbs.nothing", capture=())(nothing)
        with override_settings(JOBQUEUE=CAPTURE), translation.override("fr"):
            assert handler.enqueue().metadata == {"language": "fr"}
            assert other.enqueue().metadata is None
    finally:
        registry.remove("verbs.captured")
        registry.remove("verbs.nothing")


@override_settings(JOBQUEUE=CAPTURE)
def test_what_the_caller_writes_wins_over_what_is_captured() -> None:
    with translation.override("de"), timezone.override(UTC):
        made = jobs.add.using(metadata={"language": "it", "x": 1}).enqueue(1)
    assert made.metadata == {"language": "it", "x": 1, "time_zone": "UTC"}


@override_settings(JOBQUEUE=CAPTURE)
def test_what_cannot_be_named_is_not_captured() -> None:
    with translation.override(None), timezone.override(fixed(timedelta(hours=1))):
        assert jobs.add.enqueue(1).metadata is None


def test_one_job_may_have_other_attempts_than_its_type(worker: HandDriven) -> None:
    made = jobs.fail.using(max_attempts=1).enqueue("no")
    more = jobs.add.using(max_attempts=7).enqueue(1)
    assert (made.max_attempts, more.max_attempts) == (1, 7)
    worker.work()
    assert archived(id=made.id)[0].attempts == 1


def test_attempts_that_cannot_be_are_refused() -> None:
    assert refused(lambda: jobs.add.using(max_attempts=0)) == (
        "max_attempts must be a whole number of at least 1, not 0."
    )
    assert refused(lambda: jobs.write_once.using(max_attempts=2)) == (
        "max_attempts must be 1: tests.sample.write_once is delivered at most once."
    )
    jobs.write_once.using(max_attempts=1)


def test_a_time_to_live_counts_from_when_the_job_is_due() -> None:
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    made = jobs.add.using(run_after=moment, expires_in=timedelta(hours=2)).enqueue(1)
    seconds = jobs.add.using(run_after=moment, expires_in=90).enqueue(1)
    assert made.expires_at == moment + timedelta(hours=2)
    assert seconds.expires_at == moment + timedelta(seconds=90)
    assert refused(lambda: jobs.add.using(expires_in=0)) == (
        "expires_in must be more than zero, not 0."
    )
    assert refused(lambda: jobs.add.using(expires_in=1, expires_at=moment)) == (
        "expires_at and expires_in both say after which moment the job is not started; "
        "give one of them."
    )


def test_options_add_to_those_that_were_given_before() -> None:
    urgent = jobs.add.using(priority=9, queue="q")
    urgent.using(queue="other", tags=(tag for tag in "ab")).enqueue(1)
    urgent.using(priority=None).enqueue(2)
    one, two = queued()
    assert (one.priority, one.queue, one.tags) == (9, "other", ["a", "b"])
    assert (two.priority, two.queue, two.tags) == (0, "q", None)


def test_an_option_that_there_is_not_is_refused_with_the_nearest() -> None:
    use: Callable[..., Any] = jobs.add.using
    with pytest.raises(TypeError) as caught:
        use(prioriti=3)
    assert str(caught.value) == (
        "There is no option 'prioriti' of a job. Did you mean 'priority'?"
    )


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("unique_key", "", "must be a string that is not empty, not ''."),
        ("unique_key", 7, "must be a string that is not empty, not 7."),
        (
            "unique_until",
            "start",
            "must be 'finished', 'started' or 'forever', not 'start'. Did",
        ),
        (
            "on_duplicate",
            "skip",
            "must be 'raise', 'return' or 'replace', not 'skip'.",
        ),
        ("using", "defualt", "must be an alias of DATABASES, not 'defualt'. Did you m"),
    ],
)
def test_an_option_that_cannot_be_is_refused_by_its_name(
    option: str, value: Any, problem: str
) -> None:
    use: Callable[..., Any] = jobs.add.using
    said = refused(lambda: use(**{option: value}))
    assert said.startswith(f"{option} {problem}")


def test_many_by_name() -> None:
    calls = [{"a": number} for number in range(3)]
    ids = enqueue_many("tests.sample.add", iter(calls), queue="q", tags=["x"])
    assert [row.id for row in queued()] == ids
    assert [row.data for row in queued()] == calls
    assert {(row.queue, str(row.tags)) for row in queued()} == {("q", "['x']")}
    JobType.objects.create(name="elsewhere.report", queue="reports")
    enqueue_many("elsewhere.report", [{"anything": 1}])
    assert queued(queue="reports")[0].data == {"anything": 1}


def test_many_by_name_from_async_code() -> None:
    async def make() -> list[UUID]:
        ids = await aenqueue_many("tests.sample.add", [{"a": 1}], priority=5)
        await sync_to_async(connections.close_all)()
        return ids

    ids = asyncio.run(make())
    assert [(row.id, row.priority) for row in queued()] == [(ids[0], 5)]


@pytest.mark.parametrize(
    ("calls", "problem"),
    [
        ([{"a": 1}, {"b": 2}], "calls[1]: tests.sample.jobs.add() is missing"),
        (
            [[1]],
            "calls[0]: The data for tests.sample.jobs.add() must be an object",
        ),
    ],
)
def test_one_bad_call_of_many_by_name_refuses_them_all(
    calls: Any, problem: str
) -> None:
    assert refused(lambda: enqueue_many("tests.sample.add", calls)).startswith(problem)
    assert queued() == []


def follow(job: str, status: str) -> None: ...


@pytest.mark.parametrize("how", ["declared", "of one job"])
def test_a_follower_that_nobody_knows_is_named_with_whose_it_is(how: str) -> None:
    """Of a short name, too, the whole one is told."""
    options: dict[str, Any] = {"on_complete": "ad_alone"}
    try:
        handler = job(name="verbs.first", **(options if how == "declared" else {}))(
            nothing
        )
        used = handler if how == "declared" else handler.using(**options)
        with pytest.raises(UnknownJobType) as caught:
            used.enqueue()
    finally:
        registry.remove("verbs.first")
    assert str(caught.value).startswith(
        "follower of 'verbs.first': there is no job type 'ad_alone'. Did you mean "
        "'tests.sample.add_alone'"
    )
    assert (caught.value.name, caught.value.follows) == ("ad_alone", "verbs.first")


def test_a_wait_below_zero_is_none() -> None:
    before = timezone.now()
    made = jobs.add.using(run_after=timedelta(days=-1)).enqueue(1)
    assert made.run_after >= before - timedelta(seconds=1)


def test_a_job_that_expired_before_it_was_enqueued_expires_at_once(
    worker: HandDriven,
) -> None:
    """A deadline may pass while the code runs that enqueues before it."""
    made = jobs.add.using(expires_at=timezone.now() - timedelta(seconds=1)).enqueue(1)
    worker.work()
    operations.get_job(made.id)
    assert not archived(status="succeeded")


def test_a_pause_cannot_end_before_it_begins() -> None:
    past = timezone.now() - timedelta(seconds=1)
    for queues in (False, True):
        problem = refused(
            lambda queues=queues: operations.pause(  # type: ignore[misc]
                "tests.sample.add", queues=queues, resume_at=past
            )
        )
        assert problem == f"resume_at must be in the future, not {past}."
    assert not JobType.objects.filter(paused=True).exists()


def test_a_replay_cannot_expire_before_it_is_due(worker: HandDriven) -> None:
    made = jobs.add.enqueue(1)
    worker.work()
    due = timezone.now() + timedelta(hours=1)
    for replay in (operations.replay, operations.replay_many):
        assert refused(
            lambda replay=replay: replay(made.id, run_after=due, expires=due)  # type: ignore[misc]
        ).startswith("expires_at must be later than run_after")
