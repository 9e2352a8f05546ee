"""The errors: drawn as a tree, and each message says what to do next."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

import django_jobqueue
from django_jobqueue import exceptions
from django_jobqueue.domain.ids import new_id
from django_jobqueue.exceptions import (
    AlreadyArchived,
    Cancel,
    ClaimLost,
    DuplicateJob,
    EnqueueError,
    Fail,
    InvalidArguments,
    JobControl,
    JobNotFound,
    JobQueueError,
    JobTimeout,
    NotReplayable,
    Retry,
    Snooze,
    StoreUnavailable,
    UnknownJobType,
)
from django_jobqueue.retries import LONGEST
from tests.domain.made import queued_job

ID = UUID("019aa2f0-0000-7000-8000-000000000001")


@pytest.mark.parametrize(
    ("error", "parents"),
    [
        (UnknownJobType, (EnqueueError, JobQueueError)),
        (InvalidArguments, (EnqueueError, JobQueueError, ValueError)),
        (DuplicateJob, (EnqueueError, JobQueueError)),
        (AlreadyArchived, (EnqueueError, JobQueueError)),
        (JobNotFound, (JobQueueError, LookupError)),
        (ClaimLost, (JobQueueError,)),
        (NotReplayable, (JobQueueError,)),
        (StoreUnavailable, (JobQueueError,)),
        (JobTimeout, (TimeoutError,)),
    ],
)
def test_the_tree_of_errors_is_as_it_is_drawn(
    error: type[Exception], parents: tuple[type[Exception], ...]
) -> None:
    for parent in parents:
        assert issubclass(error, parent)


@pytest.mark.parametrize("word", [Retry, Snooze, Fail, Cancel])
def test_a_word_of_a_handler_is_no_failure_of_the_job_queue(
    word: type[Exception],
) -> None:
    assert issubclass(word, JobControl)
    assert not issubclass(word, JobQueueError)


def test_every_error_is_a_public_name_and_drawn_in_the_docstring() -> None:
    assert exceptions.__doc__ is not None
    for name, value in vars(exceptions).items():
        if not isinstance(value, type) or not issubclass(value, Exception):
            continue
        assert name in exceptions.__doc__
        assert name == "JobControl" or name in django_jobqueue.__all__


def test_an_unknown_job_type_names_the_near_misses() -> None:
    error = UnknownJobType("shop.sned", ["shop.send", "shop.seed"])
    assert str(error) == (
        "There is no job type 'shop.sned'. Did you mean 'shop.send' or 'shop.seed'?"
    )
    assert (error.name, error.near) == ("shop.sned", ["shop.send", "shop.seed"])


def test_an_unknown_job_type_without_near_misses_says_how_to_declare_one() -> None:
    error = UnknownJobType("nothing.like.it")
    assert str(error) == (
        "There is no job type 'nothing.like.it'. Declare a handler for it with @job in "
        "an app's jobs.py, or run manage.py migrate where the handler is declared."
    )
    assert error.near == []


def test_a_duplicate_carries_the_job_that_it_duplicates() -> None:
    job = queued_job(id=ID)
    error = DuplicateJob(f"Job {ID} waits already.", job)
    assert str(error) == f"Job {ID} waits already."
    assert error.job is job


def test_an_id_whose_job_is_over_says_how_to_go_on() -> None:
    error = AlreadyArchived(ID, "failed")
    assert str(error) == (
        f"Job {ID} is over already (failed), so its id cannot be enqueued again. "
        "Replay it, or use a new id."
    )
    assert (error.id, error.status) == (ID, "failed")


def test_a_job_that_is_not_there_says_why_it_may_not_be() -> None:
    error = JobNotFound(ID)
    assert str(error) == (
        f"There is no job {ID}, neither queued nor archived. It may have been pruned, "
        "or the transaction that enqueued it was rolled back."
    )
    assert error.id == ID


def test_a_lost_lease_says_that_nothing_was_written() -> None:
    error = ClaimLost(ID)
    assert str(error) == (
        f"The claim on job {ID} was lost while it ran: its worker was taken for dead "
        "and the job given to another. Nothing of this attempt was written."
    )
    assert error.id == ID


def test_a_job_that_cannot_be_replayed_says_what_state_it_is_in() -> None:
    error = NotReplayable(ID, "running")
    assert str(error) == (
        f"Job {ID} is running; only a job that is over can be replayed. Wait for it to "
        "end, or cancel it first."
    )
    assert (error.id, error.status) == (ID, "running")


def test_an_unavailable_store_says_when_to_try_again() -> None:
    error = StoreUnavailable("the server is starting", retry_in=1.5)
    assert str(error) == "the server is starting"
    assert error.retry_in == 1.5


@pytest.mark.parametrize(
    ("given", "after"),
    [
        (None, None),
        (90, timedelta(seconds=90)),
        (0.5, timedelta(milliseconds=500)),
        (timedelta(hours=2), timedelta(hours=2)),
    ],
)
def test_retry_takes_its_wait_in_seconds_or_as_a_timedelta(
    given: timedelta | float | None, after: timedelta | None
) -> None:
    assert Retry(after=given).after == after


def test_the_words_have_texts_of_their_own_where_no_reason_is_given() -> None:
    assert str(Retry()) == "the handler asked to be retried"
    assert str(Snooze(90)) == "snoozed for 0:01:30"
    assert str(Cancel()) == "cancelled"


def test_the_words_carry_the_reason_that_is_given() -> None:
    for word in (Retry("r"), Snooze(1, "r"), Fail("r"), Cancel("r")):
        assert (str(word), word.reason) == ("r", "r")


def test_snooze_takes_its_wait_in_seconds_or_as_a_timedelta() -> None:
    assert Snooze(60).for_ == Snooze(timedelta(minutes=1)).for_ == timedelta(minutes=1)
    assert Snooze(0).for_ == timedelta(0)


def test_a_wait_that_is_no_time_is_an_error_of_the_handler() -> None:
    with pytest.raises(TypeError):
        Snooze("60")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Retry(after="60")  # type: ignore[arg-type]


def test_ids_in_messages_are_whole() -> None:
    id = new_id()
    for error in (JobNotFound(id), ClaimLost(id), NotReplayable(id, "queued")):
        assert str(id) in str(error)


NAN = float("nan")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (-1, timedelta(0)),
        (-5.5, timedelta(0)),
        (float("-inf"), timedelta(0)),
        (timedelta(days=-3), timedelta(0)),
        (timedelta.min, timedelta(0)),
        (float("inf"), LONGEST),
        (1e300, LONGEST),
        (timedelta.max, LONGEST),
    ],
)
def test_a_wait_that_cannot_be_is_the_nearest_that_can(
    given: float | timedelta, kept: timedelta
) -> None:
    assert Retry(after=given).after == kept
    assert Snooze(given).for_ == kept
    assert str(Snooze(given)) == f"snoozed for {kept}"


def test_what_is_no_number_is_no_wait() -> None:
    for call in (lambda: Retry(after=NAN), lambda: Snooze(NAN)):
        with pytest.raises(TypeError, match="a number of seconds, not nan"):
            call()
