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
from django_jobqueue.models import JobType
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued
from tests.support.tables import differing

pytestmark = pytest.mark.django_db(transaction=True)
MOMENT = datetime(2030, 1, 1, tzinfo=UTC)
CAPTURE = {"CAPTURE": ["language", "time_zone"]}


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(InvalidArguments) as caught:
        call()
    return str(caught.value)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"metadata": [1]}, "metadata must be a dict, not [1]."),
    ({"metadata": "x"}, "metadata must be a dict, not 'x'."),
    ({"metadata": {"a": (1,)}}, "metadata['a'] is a tuple, which JSON brings back as"),
    ({"metadata": {1: 2}}, "metadata has the key 1; JSON keys are strings."),
    ({"metadata": {"a": {"b": "x\x00"}}}, "metadata['a']['b'] has a NUL character, wh"),
    ({"metadata": {"a": "x" * 1_000_000}}, "metadata is 1,000,008 bytes of JSON; at m"),
    ({"max_attempts": 0}, "max_attempts must be a whole number of at least 1, not 0."),
    ({"expires_in": 0}, "expires_in must be more than zero, not 0."),
    (
        {"expires_in": 1, "expires_at": MOMENT},
        "expires_at and expires_in both say after which moment the job is not started; "
        "give one of them.",
    ),
    ({"unique_key": ""}, "unique_key must be a string that is not empty, not ''."),
    ({"unique_key": 7}, "unique_key must be a string that is not empty, not 7."),
    (
        {"unique_until": "start"},
        "unique_until must be 'finished', 'started' or 'forever', not 'start'. Did",
    ),
    (
        {"on_duplicate": "skip"},
        "on_duplicate must be 'raise', 'return' or 'replace', not 'skip'.",
    ),
    ({"using": "defualt"}, "using must be an alias of DATABASES, not 'defualt'. Did y"),
]


def test_an_option_that_cannot_be_is_refused_by_its_name() -> None:
    def ask(options: dict[str, Any]) -> str:
        return refused(lambda: jobs.add.using(**options))

    assert differing(REFUSED, ask, str.startswith) == []
    assert refused(lambda: jobs.write_once.using(max_attempts=2)) == (
        "max_attempts must be 1: tests.sample.write_once is delivered at most once."
    )
    jobs.write_once.using(max_attempts=1)
    use: Callable[..., Any] = jobs.add.using
    with pytest.raises(TypeError) as caught:
        use(prioriti=3)
    text = "There is no option 'prioriti' of a job. Did you mean 'priority'?"
    assert str(caught.value) == text


def test_options_are_as_they_were_given_and_add_to_those_before() -> None:
    metadata = {"a": 1}
    urgent = jobs.add.using(priority=9, queue="q", metadata=metadata)
    metadata["a"] = 2
    urgent.using(queue="other", tags=(tag for tag in "ab")).enqueue(1)
    urgent.using(priority=None).enqueue(2)
    one, two = queued()
    assert (one.priority, one.queue, one.tags) == (9, "other", ["a", "b"])
    assert (two.priority, two.queue, two.tags) == (0, "q", None)
    assert one.metadata == two.metadata == {"a": 1}


def test_nothing_is_captured_unless_it_is_asked_for_or_cannot_be_named() -> None:
    with translation.override("de"), timezone.override("Asia/Tokyo"):
        assert jobs.add.enqueue(1).metadata is None
    nameless = timezone.override(fixed(timedelta(hours=1)))
    with override_settings(JOBQUEUE=CAPTURE), translation.override(None), nameless:
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
        own = jobs.add.using(metadata={"language": "it", "x": 1}).enqueue(1)
    captured = {"language": "de", "time_zone": "Asia/Tokyo"}
    assert made.metadata == captured
    assert own.metadata == {**captured, "language": "it", "x": 1}
    assert [row.metadata for row in queued()][:3] == [captured] * 3


def test_a_handler_says_itself_what_is_captured() -> None:
    def nothing() -> None: ...

    handler = job(name="verbs.captured", capture=("language",))(nothing)
    other = job(name="verbs.nothing", capture=())(nothing)
    with override_settings(JOBQUEUE=CAPTURE), translation.override("fr"):
        assert handler.enqueue().metadata == {"language": "fr"}
        assert other.enqueue().metadata is None


def test_many_by_name() -> None:
    calls = [{"a": number} for number in range(3)]
    ids = enqueue_many("tests.sample.add", iter(calls), queue="q", tags=["x"])
    assert [row.id for row in queued()] == ids
    assert [row.data for row in queued()] == calls
    assert {(row.queue, str(row.tags)) for row in queued()} == {("q", "['x']")}
    JobType.objects.create(name="elsewhere.report", queue="reports")
    enqueue_many("elsewhere.report", [{"anything": 1}])
    assert queued(queue="reports")[0].data == {"anything": 1}

    async def make() -> list[UUID]:
        ids = await aenqueue_many("tests.sample.add", [{"a": 1}], priority=5)
        await sync_to_async(connections.close_all)()
        return ids

    ids = asyncio.run(make())
    assert [row.id for row in queued(priority=5)] == ids
    for bad, problem in (
        ([{"a": 1}, {"b": 2}], "calls[1]: tests.sample.jobs.add() is missing"),
        ([[1]], "calls[0]: The data for tests.sample.jobs.add() must be an object"),
    ):
        text = refused(lambda bad=bad: enqueue_many("tests.sample.add", bad))
        assert text.startswith(problem)
    assert len(queued()) == 5


@pytest.mark.parametrize("declared", [{"on_complete": "ad_alone"}, {}])
def test_an_unknown_follower_is_named_with_whose_it_is(
    declared: dict[str, Any],
) -> None:
    """Of a short name, too, the whole one is told."""

    def nothing() -> None: ...

    handler = job(name="verbs.first", **declared)(nothing)
    used = handler if declared else handler.using(on_complete="ad_alone")
    with pytest.raises(UnknownJobType) as caught:
        used.enqueue()
    assert str(caught.value).startswith(
        "follower of 'verbs.first': there is no job type 'ad_alone'. Did you mean "
        "'tests.sample.add_alone'"
    )
    assert (caught.value.name, caught.value.follows) == ("ad_alone", "verbs.first")


def test_a_moment_in_the_past_is_no_error(worker: HandDriven) -> None:
    """While the code runs that enqueues before it."""
    before = timezone.now()
    made = jobs.add.using(run_after=timedelta(days=-1)).enqueue(1)
    assert made.run_after >= before - timedelta(seconds=1)
    late = jobs.add.using(expires_at=timezone.now() - timedelta(seconds=1)).enqueue(1)
    worker.work()
    operations.get_job(late.id)
    assert [job.id for job in archived(status="succeeded")] == [made.id]
