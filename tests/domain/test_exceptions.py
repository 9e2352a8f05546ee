"""The errors: drawn as a tree, and each message says what to do next."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

import django_jobqueue
from django_jobqueue import exceptions
from django_jobqueue.exceptions import Cancel, Fail, JobQueueError, Retry, Snooze
from django_jobqueue.retries import LONGEST
from tests.domain.made import queued_job
from tests.support.tables import differing

ID = UUID("019aa2f0-0000-7000-8000-000000000001")


PARENTS: dict[type[Exception], tuple[type[Exception], ...]] = {
    exceptions.UnknownJobType: (exceptions.EnqueueError, JobQueueError),
    exceptions.InvalidArguments: (exceptions.EnqueueError, JobQueueError, ValueError),
    exceptions.DuplicateJob: (exceptions.EnqueueError, JobQueueError),
    exceptions.AlreadyArchived: (exceptions.EnqueueError, JobQueueError),
    exceptions.JobNotFound: (JobQueueError, LookupError),
    exceptions.ClaimLost: (JobQueueError,),
    exceptions.NotReplayable: (JobQueueError,),
    exceptions.StoreUnavailable: (JobQueueError,),
    exceptions.JobTimeout: (TimeoutError,),
}


def test_the_tree_of_errors_is_as_it_is_drawn_and_public() -> None:
    for error, parents in PARENTS.items():
        assert all(issubclass(error, parent) for parent in parents), error
    for word in (Retry, Snooze, Fail, Cancel):
        assert issubclass(word, exceptions.JobControl)
        assert not issubclass(word, JobQueueError)
    assert exceptions.__doc__ is not None
    for name, value in vars(exceptions).items():
        if not isinstance(value, type) or not issubclass(value, Exception):
            continue
        assert name in exceptions.__doc__
        assert name == "JobControl" or name in django_jobqueue.__all__


def test_an_unknown_job_type_names_the_near_misses_or_how_to_declare_one() -> None:
    error = exceptions.UnknownJobType("shop.sned", ["shop.send", "shop.seed"])
    assert str(error) == (
        "There is no job type 'shop.sned'. Did you mean 'shop.send' or 'shop.seed'?"
    )
    assert (error.name, error.near) == ("shop.sned", ["shop.send", "shop.seed"])
    error = exceptions.UnknownJobType("nothing.like.it")
    assert str(error) == (
        "There is no job type 'nothing.like.it'. Declare a handler for it with @job in "
        "an app's jobs.py, or run manage.py migrate where the handler is declared."
    )
    assert error.near == []


def test_an_error_about_a_job_says_what_it_means_and_how_to_go_on() -> None:
    archived, missing = (
        exceptions.AlreadyArchived(ID, "failed"),
        exceptions.JobNotFound(ID),
    )
    lost, running = exceptions.ClaimLost(ID), exceptions.NotReplayable(ID, "running")
    assert str(archived) == (
        f"Job {ID} has already ended (failed), so its id cannot be enqueued again. "
        "Replay it, or use a new id."
    )
    assert str(missing) == (
        f"There is no job {ID}, neither queued nor archived. It may have been pruned, "
        "or the transaction that enqueued it was rolled back."
    )
    assert str(lost) == (
        f"The claim on job {ID} was lost while it ran: its worker was presumed dead "
        "and the job given to another. This attempt wrote nothing."
    )
    assert str(running) == (
        f"Job {ID} is running; only a finished job can be replayed. Wait for it to "
        "end, or cancel it first."
    )
    assert [error.id for error in (archived, missing, lost, running)] == [ID] * 4
    assert (archived.status, running.status) == ("failed", "running")
    job = queued_job(id=ID)
    duplicate = exceptions.DuplicateJob(f"Job {ID} waits already.", job)
    assert (str(duplicate), duplicate.job) == (f"Job {ID} waits already.", job)
    lost = exceptions.StoreUnavailable("the server is starting", retry_in=1.5)
    assert (str(lost), lost.retry_in) == ("the server is starting", 1.5)


def test_the_words_have_texts_of_their_own_where_no_reason_is_given() -> None:
    assert str(Retry()) == "the handler asked to be retried"
    assert Retry().after is None
    assert str(Snooze(90)) == "snoozed for 0:01:30"
    assert str(Cancel()) == "cancelled"
    for word in (Retry("r"), Snooze(1, "r"), Fail("r"), Cancel("r")):
        assert (str(word), word.reason) == ("r", "r")
    past = (-1, -5.5, float("-inf"), timedelta(-3), timedelta.min)
    waits: list[tuple[float | timedelta, timedelta]] = [
        *((90, timedelta(seconds=90)), (0.5, timedelta(milliseconds=500))),
        *((timedelta(hours=2), timedelta(hours=2)), (0, timedelta(0))),
        *((given, timedelta(0)) for given in past),
        *((given, LONGEST) for given in (float("inf"), 1e300, timedelta.max)),
    ]
    assert differing(waits, lambda given: Retry(after=given).after) == []
    assert differing(waits, lambda given: Snooze(given).for_) == []
    for given, kept in waits:
        assert str(Snooze(given)) == f"snoozed for {kept}"
    wrong: Any
    for wrong, said in (("60", None), (float("nan"), "a number of seconds, not nan")):
        for call in (lambda w=wrong: Retry(after=w), lambda w=wrong: Snooze(w)):
            with pytest.raises(TypeError, match=said):
                call()
