"""``decide`` always decides, and never against its inputs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue import Cancel, Fail, JobTimeout, Retry, Snooze
from django_jobqueue.domain.policy import Policy
from django_jobqueue.domain.retry_decision import Outcome, StopReason, Verb, decide
from django_jobqueue.domain.states import AttemptEnd, Delivery
from django_jobqueue.retries import LONGEST, POLICIES, Backoff
from tests.domain.made import context
from tests.properties import values

ENDS = {
    Verb.SUCCEED: {None},
    Verb.FAIL: {AttemptEnd.FAILED, AttemptEnd.TIMED_OUT},
    Verb.RETRY: {AttemptEnd.FAILED, AttemptEnd.TIMED_OUT},
    Verb.SNOOZE: {AttemptEnd.SNOOZED},
    Verb.CANCEL: {AttemptEnd.CANCELLED},
    Verb.RELEASE: {AttemptEnd.RELEASED},
}
TOLD = (asyncio.CancelledError, Cancel)


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    """A backoff that fails is logged, which is not what is tried here."""
    logger = logging.getLogger("django_jobqueue.attempt")
    logger.disabled = True
    yield
    logger.disabled = False


decisions = {
    "error": values.raised,
    "policy": values.policies,
    "attempt": values.attempts,
    "max_attempts": values.max_attempts,
    "asked": values.asked,
    "own": st.none() | st.sampled_from(list(POLICIES.values())),
    "runs_code": st.booleans(),
}


@given(**decisions)
def test_every_decision_is_consistent(
    error: BaseException | None,
    policy: Policy,
    attempt: int,
    max_attempts: int | None,
    asked: StopReason,
    own: Backoff | None,
    runs_code: bool,
) -> None:
    outcome = decide(
        error,
        policy=policy,
        attempt=attempt,
        max_attempts=max_attempts,
        asked=asked,
        backoff=own,
        context=context if runs_code else None,
    )
    once = policy.delivery == Delivery.AT_MOST_ONCE
    assert outcome.end in ENDS[outcome.verb]
    assert timedelta(0) <= outcome.wait <= LONGEST
    assert (outcome.verb is Verb.SUCCEED) == (error is None)
    if once:
        assert outcome.verb in (Verb.SUCCEED, Verb.FAIL, Verb.CANCEL)
    if outcome.verb is Verb.RETRY:
        assert max_attempts is None or attempt < max_attempts
    if outcome.verb is Verb.FAIL:
        assert outcome.reason
        assert runs_code or outcome.reason != "the backoff policy said so"
    check_rule(error, policy, attempt, outcome)
    check_words(error, outcome, asked, once)


def check_rule(
    error: BaseException | None, policy: Policy, attempt: int, outcome: Outcome
) -> None:
    """The rule of the nearest class holds, as an ``except`` would find it."""
    if error is None or isinstance(error, Retry) or outcome.verb is not Verb.RETRY:
        return
    fitting = [rule for rule in policy.retry if isinstance(error, rule.exception)]
    for rule in fitting:
        nearer = [one for one in fitting if issubclass(one.exception, rule.exception)]
        if nearer == [rule]:
            assert rule.is_retried
            assert rule.max_attempts is None or attempt < rule.max_attempts


def check_words(
    error: BaseException | None, outcome: Outcome, asked: StopReason, once: bool
) -> None:
    """What the four words, and what the handler was told, have to do with it."""
    if isinstance(error, Fail):
        assert outcome.verb is Verb.FAIL
    if isinstance(error, Snooze) and not once:
        assert outcome.verb is Verb.SNOOZE
    if outcome.verb is Verb.SNOOZE:
        assert isinstance(error, Snooze)
    if outcome.verb is Verb.RELEASE:
        assert asked is StopReason.STOP
        assert isinstance(error, TOLD)
    if outcome.verb is Verb.CANCEL:
        assert isinstance(error, Cancel) or asked is StopReason.CANCEL
        assert asked is not StopReason.STOP
    if outcome.end is AttemptEnd.TIMED_OUT:
        assert isinstance(error, JobTimeout) or asked is StopReason.TIME_OUT
    if isinstance(error, Retry) and outcome.verb is Verb.RETRY and error.after:
        assert outcome.wait == max(error.after, timedelta(0))
