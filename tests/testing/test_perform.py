"""One attempt, without a database."""

from __future__ import annotations

from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync

from django_jobqueue import InvalidArguments, InvalidResult, UnknownJobType
from django_jobqueue.testing import Verb, aperform, perform
from tests.testing import jobs


def test_the_outcome_and_the_value_of_sync_and_async_handlers() -> None:
    outcome = perform(jobs.add, {"a": 1, "b": 2})
    assert outcome.verb is Verb.SUCCEED
    assert (outcome.value, outcome.result, outcome.error) == (3, "3", None)
    for handler in (jobs.aadd, "tests.testing.add"):
        assert perform(handler, {"a": 1, "b": 2}).value == 3
    for handler in (jobs.aadd, jobs.add):
        assert async_to_sync(aperform)(handler, {"a": 3, "b": 4}).value == 7


def test_what_a_handler_raises_is_part_of_the_outcome() -> None:
    outcome = perform(jobs.fail, {"message": "no such order"})
    assert (outcome.verb, outcome.wait > timedelta(seconds=50)) == (Verb.RETRY, True)
    assert isinstance(outcome.error, ValueError)
    assert outcome.failure is not None
    assert outcome.failure.message == "no such order"


def test_the_four_words() -> None:
    for verb in (Verb.RETRY, Verb.SNOOZE, Verb.FAIL, Verb.CANCEL):
        outcome = perform(jobs.say, {"word": verb.value})
        assert outcome.verb is verb
        if verb in (Verb.RETRY, Verb.SNOOZE):
            assert outcome.wait == timedelta(seconds=60)


def test_the_last_attempt_fails_and_there_is_none_beyond_it() -> None:
    assert perform(jobs.fail, attempt=3).verb is Verb.FAIL
    assert perform(jobs.fail, attempt=3, max_attempts=4).verb is Verb.RETRY
    assert perform(jobs.fail, attempt=1, max_attempts=1).reason == "no attempt is left"
    with pytest.raises(InvalidArguments, match="say max_attempts=6"):
        perform(jobs.greet, {"name": "anna"}, attempt=6)
    assert perform(jobs.fail, attempt=6, max_attempts=6).verb is Verb.FAIL


def test_the_context_is_that_of_the_attempt() -> None:
    outcome = perform(
        jobs.tell, attempt=2, max_attempts=7, crashes=1, metadata={"key": "kept"}
    )
    assert outcome.value == [2, 7, 1, "kept"]
    assert outcome.context.metadata == {"key": "kept", "more": 1}


def test_data_are_those_of_json_and_fit_the_handler() -> None:
    with pytest.raises(InvalidArguments, match="is missing 'b'"):
        perform(jobs.add, {"a": 1})
    with pytest.raises(InvalidArguments, match="is a set"):
        perform(jobs.add, {"a": 1, "b": {2}})
    with pytest.raises(UnknownJobType, match="Did you mean 'tests.testing.add'"):
        perform("tests.testing.ad")


def test_a_result_that_is_no_json_fails_and_an_interrupt_is_raised() -> None:
    outcome = perform(jobs.odd)
    assert outcome.verb is Verb.FAIL
    assert isinstance(outcome.error, InvalidResult)
    with pytest.raises(KeyboardInterrupt):
        perform(jobs.interrupt)
