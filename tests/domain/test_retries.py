"""Backoff policies: within their bounds for every attempt and every draw."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from django_jobqueue import retries
from django_jobqueue.retries import (
    LONGEST,
    POLICIES,
    Backoff,
    decorrelated,
    describe,
    exponential,
    fixed,
    from_stored_form,
    immediate,
    quartic,
    respect_retry_after,
    rickover,
    stored_form,
)
from tests.support import steadiness
from tests.support.tables import differing

DRAWS = 200
HUGE = [40, 41, 64, 1_000, 10**6, 10**30]
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


@pytest.fixture(autouse=True)
def _as_for_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here, waits are drawn near zero, too."""
    monkeypatch.setattr(random, "random", steadiness.draw)


def draws(policy: Callable[[int], timedelta], attempt: int) -> list[timedelta]:
    return [policy(attempt) for _ in range(DRAWS)]


def test_exponential_draws_from_zero_to_a_bound_that_doubles() -> None:
    for attempt, seconds in (
        *((1, 10), (2, 20), (3, 40)),
        *((9, 2_560), (10, 3_600), (99, 3_600)),
    ):
        bound = timedelta(seconds=seconds)
        waits = draws(exponential, attempt)
        assert all(timedelta(0) <= wait < bound for wait in waits)
        assert max(waits) > bound * 0.9
        assert min(waits) < bound * 0.1
    waits = [exponential(n, base=SECOND, cap=HOUR, jitter=False) for n in range(1, 15)]
    assert waits == [*(timedelta(seconds=2**n) for n in range(12)), HOUR, HOUR]


def test_quartic_decorrelated_and_the_others_follow_their_formulas() -> None:
    for attempt in (1, 2, 3, 10, 50):
        least = attempt**4 + 15
        allowed = {timedelta(seconds=least + n * (attempt + 1)) for n in range(30)}
        seen = set(draws(quartic, attempt))
        assert seen <= allowed
        assert len(seen) > 20
    minute, cap = timedelta(minutes=1), timedelta(minutes=30)
    for attempt, bound in ((1, 3), (2, 9), (3, 27), (4, 30), (20, 30)):
        waits = draws(decorrelated, attempt)
        assert all(minute <= wait <= min(bound * minute, cap) for wait in waits)
        assert len(set(waits)) > 1
    assert set(draws(fixed, 7)) == {timedelta(minutes=1)}
    assert set(draws(partial(fixed, wait=HOUR), 7)) == {HOUR}
    assert set(draws(immediate, 7)) == {timedelta(0)}
    assert [rickover(n).total_seconds() for n in (1, 2, 3, 10)] == [2, 4, 8, 1_024]


def test_no_attempt_is_too_many() -> None:
    for attempt in (*range(1, 13), *HUGE):
        for policy in POLICIES.values():
            assert timedelta(0) <= policy(attempt) <= LONGEST
    for attempt in HUGE:
        wait = exponential(attempt, base=timedelta(minutes=5), jitter=False)
        assert wait == HOUR
    cap = timedelta(seconds=5)  # which holds whatever the base is
    for policy in (exponential, decorrelated):
        for attempt in (1, 5, 10**6):
            assert max(draws(partial(policy, base=SECOND, cap=cap), attempt)) <= cap
        assert policy(3, base=HOUR, cap=SECOND) <= SECOND


def wait_of(backoff: Backoff, attempt: int = 1) -> timedelta | None:
    """The wait that a policy of the attempt alone returns."""
    return retries.wait_after(backoff, attempt, ValueError(), None)


def test_a_policy_must_return_a_wait() -> None:
    wrong: tuple[Any, ...] = ("60", True, math.nan, [], 5j)
    for returned in wrong:

        def mine(attempt: int, returned: Any = returned) -> Any:
            return returned

        with pytest.raises(TypeError) as caught:
            wait_of(mine)
        assert str(caught.value) == (
            "The backoff test_a_policy_must_return_a_wait.<locals>.mine returned "
            f"{returned!r}; it must return seconds, a timedelta or None."
        )
    past, much = (timedelta(-1), timedelta.min, -3), (timedelta.max, math.inf, 10**400)
    waits: list[tuple[Any, timedelta | None]] = [
        *((wait, timedelta(0)) for wait in past),
        *((wait, LONGEST) for wait in (*much, LONGEST + SECOND)),
        *((HOUR, HOUR), (3600, HOUR), (0.5, SECOND / 2), (None, None)),
    ]
    assert differing(waits, lambda wait: wait_of(lambda attempt: wait)) == []


def one(attempt: int) -> float:
    return attempt


def one_and_default(attempt: int, most: int = 60, *, least: int = 0) -> float:
    return attempt


def three(attempt: int, exception: BaseException, job: object) -> float:
    return attempt


def three_and_default(
    attempt: int, exception: BaseException, job: object, most: int = 60
) -> float:
    return attempt


class OfThree:
    def __call__(self, attempt: int, exception: BaseException, job: object) -> float:
        return attempt


def test_a_function_is_called_with_what_it_takes() -> None:
    of_attempts = [*POLICIES.values(), partial(exponential, base=1), one]
    of_attempts += [one_and_default, partial(one_and_default, most=5)]
    of_exceptions: list[Any] = [
        three,
        three_and_default,
        OfThree(),
        respect_retry_after,
    ]
    of_exceptions += [partial(three_and_default, most=5), lambda *everything: 5]
    of_exceptions += [partial(respect_retry_after, cap=60)]
    functions: tuple[Any, ...] = (*of_attempts, *of_exceptions)
    for function in functions:
        assert retries.function_problem(function) is None
        assert retries.sees_exception(function) is (function in of_exceptions)
        retries.wait_after(function, 4, ValueError(), object)


def test_a_named_policy_can_be_stored_and_read_again_and_nothing_else() -> None:
    forms: list[tuple[Any, dict[str, Any]]] = [
        *((policy, {"policy": name}) for name, policy in POLICIES.items()),
        (partial(fixed, wait=HOUR), {"policy": "fixed", "wait": 3600.0}),
        (partial(fixed, wait=5), {"policy": "fixed", "wait": 5}),
        (
            partial(exponential, base=1, cap=HOUR, jitter=False),
            {"policy": "exponential", "base": 1, "cap": 3600.0, "jitter": False},
        ),
    ]
    assert differing(forms, stored_form) == []
    for _, stored in forms:
        text = json.dumps(stored, allow_nan=False)
        assert stored_form(from_stored_form(json.loads(text))) == stored
    functions: tuple[Any, ...] = (one, three, OfThree(), respect_retry_after)
    for function in (*functions, partial(one_and_default, most=5)):
        assert stored_form(function) is None
    wrong: tuple[Any, ...] = (
        *(None, 5, "fixed", [], {}),
        {"policy": "mine"},
        {"policy": []},
        {"policy": "fixed", "wait": "5"},
        {"policy": "fixed", "wait": None},
        {"policy": "fixed", "waits": 5},
        {"policy": "immediate", "attempt": 5},
        {"policy": "exponential", "jitter": 1, "cap": []},
    )
    for stored in wrong:
        with pytest.raises(ValueError, match="is no backoff"):
            from_stored_form(stored)


def test_a_policy_has_a_name_for_people() -> None:
    names: list[tuple[Any, str]] = [
        *((policy, name) for name, policy in POLICIES.items()),
        (partial(fixed, wait=HOUR), "fixed(wait=1:00:00)"),
        (
            partial(exponential, base=SECOND, jitter=False),
            "exponential(base=0:00:01, jitter=False)",
        ),
        (one, "one"),
        (OfThree(), "OfThree"),
    ]
    assert differing(names, describe) == []
    assert describe(lambda attempt: HOUR).endswith("<lambda>")
