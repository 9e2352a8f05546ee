"""What was enqueued, looked for and captured; and what a test is told if it was not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DataError, connection, transaction
from django.test import override_settings

from django_jobqueue import UnknownJobType, enqueue
from django_jobqueue.enqueueing.immediate_jobs import memory
from django_jobqueue.models import JobType, QueuedJob
from django_jobqueue.testing import (
    assert_enqueued,
    assert_not_enqueued,
    captured_jobs,
    clock,
    drain,
)
from tests.testing import jobs

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    memory.clear()
    yield
    memory.clear()


@pytest.fixture(params=["queue", "immediate"])
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """With a queue, and without."""
    with override_settings(JOBQUEUE={"MODE": request.param}):
        yield request.param


def told(**about: Any) -> str:
    """What a test is told that looks for a greeting in vain."""
    with pytest.raises(AssertionError) as caught:
        assert_enqueued(jobs.hear, **about)
    return str(caught.value)


@pytest.mark.usefixtures("mode")
def test_the_job_that_is_like_this_is_returned() -> None:
    made = jobs.hear.using(queue="mail", priority=3, tags=["a", "b"]).enqueue("x")
    jobs.hear.enqueue("y")
    for about in (
        {"data": {"word": "x"}},
        {"queue": "mail"},
        {"priority": 3},
        {"tags": ["a"]},
        {"data_contains": {"word": "x"}, "queue": "mail", "tags": {"b", "a"}},
    ):
        assert assert_enqueued(jobs.hear, **about).id == made.id
        assert assert_enqueued("tests.testing.hear", **about).id == made.id


@pytest.mark.usefixtures("mode")
def test_several_are_asked_for_by_their_number() -> None:
    ids = jobs.hear.enqueue_many([{"word": "x"}, {"word": "x"}])
    assert [job.id for job in assert_enqueued(jobs.hear, count=2)] == ids
    assert assert_enqueued(jobs.greet, count=0) == []
    assert "2 jobs like this were enqueued: 'tests.testing.hear'." in told()
    assert "Say count=2, or more about the one that you mean." in told()
    assert told(count=1).startswith("2 jobs, not 1, like this were enqueued")


def test_run_after_is_a_moment_or_a_wait() -> None:
    with clock(NOON):
        job = jobs.hear.using(run_after=timedelta(hours=1)).enqueue("x")
        for after in (timedelta(hours=1), NOON + timedelta(hours=1)):
            assert assert_enqueued(jobs.hear, run_after=after).id == job.id
        assert "run_after is 2030-06-01 13:00:00+00:00, not 2030-06-01 12:00" in told(
            run_after=NOON
        )
        nearly = timedelta(minutes=58)
        assert "not 2030-06-01 12:58" in told(run_after=nearly)
        tolerance = timedelta(minutes=2)
        assert assert_enqueued(jobs.hear, run_after=nearly, tolerance=tolerance)


@pytest.mark.usefixtures("mode")
def test_a_part_of_the_data_is_enough_where_that_is_said() -> None:
    jobs.hear_anything.enqueue({"a": {"b": [1, 2], "c": 3}, "d": 4})
    about = {"word": {"a": {"c": 3}}}
    assert assert_enqueued(jobs.hear_anything, data_contains=about)
    about = {"word": {"a": {"b": [1], "c": 3}, "e": 5}}
    with pytest.raises(AssertionError) as caught:
        assert_enqueued(jobs.hear_anything, data=about)
    text = str(caught.value)
    assert 'data["word"]["a"]["b"] is [1, 2], not [1]' in text
    assert 'data["word"] lacks "e"' in text
    assert 'data["word"] has "d" as well' in text


def test_jobs_that_ran_count_as_well_and_types_known_by_their_row() -> None:
    jobs.hear.enqueue("x")
    drain()
    assert assert_enqueued(jobs.hear, status="succeeded").is_over
    assert 'status is "succeeded", not "queued"' in told(status="queued")
    JobType.objects.create(name="elsewhere.job")
    enqueue("elsewhere.job", {"a": 1})
    assert assert_enqueued("elsewhere.job", data={"a": 1})


def test_a_failure_shows_what_there_is_most_alike_first() -> None:
    jobs.greet.enqueue("anna")
    jobs.hear.using(queue="mail", tags=["a"]).enqueue("z")
    jobs.hear.using(queue="mail", priority=3).enqueue("y")
    assert told(data={"word": "y"}, queue="sms", tags=["b"]).splitlines() == [
        "No job like this was enqueued: 'tests.testing.hear' with "
        'data={"word": "y"}, queue="sms", tags=["b"].',
        "Enqueued, most alike first:",
        '  tests.testing.hear data={"word": "y"} queue="mail" priority=3 (queued)'
        '  <- queue is "mail", not "sms"; tags lack "b"',
        '  tests.testing.hear data={"word": "z"} queue="mail" tags=["a"] (queued)'
        '  <- data["word"] is "z", not "y"; queue is "mail", not "sms"; tags lack "b"',
        '  tests.testing.greet data={"name": "anna"} queue="default" (queued)',
    ]


def test_an_argument_that_makes_no_sense_is_refused_by_its_name() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"quee": "mail"}, "() has no argument 'quee'. Did you mean 'queue'?"),
        ({"xyzzy": 1}, "() has no argument 'xyzzy'. Its arguments are data, "),
        ({"run_after": 5}, "run_after must be a datetime or a timedelta, not 5."),
        ({"tolerance": 5}, "tolerance must be a timedelta, not 5."),
        ({"tags": "a"}, "tags must be a list of strings: tags=['a']."),
    ]
    for verb in (assert_enqueued, assert_not_enqueued):
        for about, text in cases:
            with pytest.raises(TypeError) as caught:
                verb(jobs.add, **about)
            name = verb.__name__ if text.startswith("()") else ""
            assert str(caught.value).startswith(f"{name}{text}")


def test_a_failure_says_what_waits_for_a_commit_and_shows_no_endless_list() -> None:
    transaction.on_commit(lambda: None)
    assert told().splitlines()[1:] == [
        "Nothing was enqueued.",
        "1 on_commit callbacks wait: drain() calls them, and "
        "captureOnCommitCallbacks(execute=True).",
    ]
    drain()
    assert told().splitlines()[1:] == ["Nothing was enqueued."]
    jobs.greet.enqueue_many({"name": str(n)} for n in range(12))
    assert "  … and 2 more" in told().splitlines()


@pytest.mark.usefixtures("mode")
def test_what_must_not_be_enqueued_is_listed_and_has_a_name_that_there_is() -> None:
    jobs.hear.enqueue("x")
    assert_not_enqueued(jobs.greet)
    assert_not_enqueued(jobs.hear, data={"word": "y"})
    with pytest.raises(AssertionError, match='(?s)1 job like this was.*"word": "x"'):
        assert_not_enqueued(jobs.hear)
    with pytest.raises(UnknownJobType, match="Did you mean 'tests.testing.hear'"):
        assert_not_enqueued("tests.testing.heard")
    with pytest.raises(TypeError, match="is no handler, no task and no name"):
        assert_not_enqueued(5)


@pytest.mark.usefixtures("mode")
def test_jobs_are_captured_however_they_are_enqueued() -> None:
    jobs.hear.enqueue("before")
    with captured_jobs() as captured:
        assert list(captured) == []
        one = jobs.hear.enqueue("x")
        assert [job.id for job in captured] == [one.id]
        jobs.hear.enqueue_many([{"word": "y"}])
        enqueue("tests.testing.look")
    jobs.hear.enqueue("after")
    assert [job.data for job in captured] == [{"word": "x"}, {"word": "y"}, {}]
    assert [job.data["word"] for job in captured.of(jobs.hear)] == ["x", "y"]
    assert len(captured) == len(captured[:]) == 3
    assert captured[2].job_type in repr(captured)


def test_rows_inserted_by_hand_are_captured_too_and_none_that_are_rolled_back() -> None:
    jobs.hear.enqueue("declared")
    with captured_jobs() as captured:
        QueuedJob.objects.create(job_type_id="tests.testing.hear", data={"word": "x"})
        with suppress(ZeroDivisionError), transaction.atomic():
            jobs.hear.enqueue("y")
            raise ZeroDivisionError
    assert [job.data for job in captured] == [{"word": "x"}]


def test_a_broken_transaction_does_not_hide_what_broke_it() -> None:
    with pytest.raises(DataError), transaction.atomic(), captured_jobs():
        connection.cursor().execute("SELECT 1 / 0")
