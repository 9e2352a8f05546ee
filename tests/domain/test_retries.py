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

from django_jobqueue.retries import (
    LONGEST,
    POLICIES,
    Backoff,
    decorrelated,
    describe,
    exponential,
    fixed,
    from_stored_form,
    function_problem,
    immediate,
    quartic,
    respect_retry_after,
    rickover,
    sees_exception,
    stored_form,
    wait_after,
)
from tests.support import steadiness

DRAWS = 500
HUGE = [40, 41, 64, 1_000, 10**6, 10**30]
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


@pytest.fixture(autouse=True)
def _as_for_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here, waits are drawn near zero, too."""
    monkeypatch.setattr(random, "random", steadiness.draw)


def draws(policy: Callable[[int], timedelta], attempt: int) -> list[timedelta]:
    return [policy(attempt) for _ in range(DRAWS)]


@pytest.mark.parametrize(
    ("attempt", "bound"),
    [(1, 10), (2, 20), (3, 40), (9, 2_560), (10, 3_600), (99, 3_600)],
)
def test_exponential_draws_from_zero_to_a_bound_that_doubles(
    attempt: int, bound: int
) -> None:
    waits = draws(exponential, attempt)
    assert all(timedelta(0) <= wait < timedelta(seconds=bound) for wait in waits)
    assert max(waits) > timedelta(seconds=bound * 0.9)
    assert min(waits) < timedelta(seconds=bound * 0.1)


def test_exponential_without_jitter_is_its_bound() -> None:
    waits = [exponential(n, base=SECOND, cap=HOUR, jitter=False) for n in range(1, 15)]
    doubled = [timedelta(seconds=2**n) for n in range(12)]
    assert waits == [*doubled, HOUR, HOUR]


@pytest.mark.parametrize("attempt", [1, 2, 3, 10, 50])
def test_quartic_is_the_formula_of_gocraft(attempt: int) -> None:
    least = attempt**4 + 15
    allowed = {timedelta(seconds=least + n * (attempt + 1)) for n in range(30)}
    seen = set(draws(quartic, attempt))
    assert seen <= allowed
    assert len(seen) > 20


def test_decorrelated_draws_from_its_base_to_three_times_the_wait_before() -> None:
    minute, cap = timedelta(minutes=1), timedelta(minutes=30)
    for attempt, bound in ((1, 3), (2, 9), (3, 27), (4, 30), (20, 30)):
        waits = draws(decorrelated, attempt)
        assert all(minute <= wait <= min(bound * minute, cap) for wait in waits)
        assert len(set(waits)) > 1


def test_fixed_and_immediate_do_not_vary() -> None:
    assert set(draws(fixed, 7)) == {timedelta(minutes=1)}
    assert set(draws(partial(fixed, wait=HOUR), 7)) == {HOUR}
    assert set(draws(immediate, 7)) == {timedelta(0)}


def test_rickover_doubles_from_two_seconds() -> None:
    assert [rickover(n).total_seconds() for n in (1, 2, 3, 10)] == [2, 4, 8, 1_024]


@pytest.mark.parametrize("attempt", HUGE)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_no_attempt_is_too_many(
    policy: Callable[[int], timedelta], attempt: int
) -> None:
    assert timedelta(0) <= policy(attempt) <= LONGEST


@pytest.mark.parametrize("attempt", HUGE)
def test_exponential_is_capped_with_any_base(attempt: int) -> None:
    wait = exponential(attempt, base=timedelta(minutes=5), jitter=False)
    assert wait == HOUR


@pytest.mark.parametrize("attempt", [1, 5, 10**6])
@pytest.mark.parametrize("policy", [exponential, decorrelated])
def test_a_cap_holds_whatever_the_base_is(
    policy: Callable[..., timedelta], attempt: int
) -> None:
    capped = partial(policy, base=SECOND, cap=timedelta(seconds=5))
    assert max(draws(capped, attempt)) <= timedelta(seconds=5)


@pytest.mark.parametrize("policy", [exponential, decorrelated])
def test_a_cap_below_the_base_is_a_cap(policy: Callable[..., timedelta]) -> None:
    assert policy(3, base=HOUR, cap=SECOND) <= SECOND


def wait_of(backoff: Backoff, attempt: int = 1) -> timedelta | None:
    """The wait that a policy of the attempt alone returns."""
    return wait_after(backoff, attempt, ValueError(), None)


@pytest.mark.parametrize("returned", ["60", True, math.nan, [], 5j])
def test_a_policy_must_return_a_wait(returned: Any) -> None:
    def mine(attempt: int) -> Any:
        return returned

    with pytest.raises(TypeError) as caught:
        wait_of(mine)
    assert str(caught.value) == (
        "The backoff test_a_policy_must_return_a_wait.<locals>.mine returned "
        f"{returned!r}; it must return seconds, a timedelta or None."
    )


@pytest.mark.parametrize(
    ("returned", "wait"),
    [
        (timedelta(seconds=-1), timedelta(0)),
        (timedelta.min, timedelta(0)),
        (timedelta.max, LONGEST),
        (LONGEST + SECOND, LONGEST),
        (HOUR, HOUR),
        (3600, HOUR),
        (0.5, SECOND / 2),
        (-3, timedelta(0)),
        (math.inf, LONGEST),
        (10**400, LONGEST),
        (None, None),
    ],
)
def test_a_wait_is_forced_into_what_a_database_can_add(
    returned: Any, wait: timedelta | None
) -> None:
    assert wait_of(lambda attempt: returned) == wait


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


@pytest.mark.parametrize(
    ("function", "sees"),
    [
        *((policy, False) for policy in POLICIES.values()),
        (partial(exponential, base=1), False),
        (one, False),
        (one_and_default, False),
        (partial(one_and_default, most=5), False),
        (three, True),
        (three_and_default, True),
        (partial(three_and_default, most=5), True),
        (OfThree(), True),
        (respect_retry_after, True),
        (partial(respect_retry_after, cap=60), True),
        (lambda *everything: 5, True),
    ],
    ids=lambda value: describe(value) if callable(value) else str(value),
)
def test_a_function_is_called_with_what_it_takes(
    function: Callable[..., Any], sees: bool
) -> None:
    assert function_problem(function) is None
    assert sees_exception(function) is sees
    wait_after(function, 4, ValueError(), object)


STORED = [
    *((policy, {"policy": name}) for name, policy in POLICIES.items()),
    (partial(fixed, wait=HOUR), {"policy": "fixed", "wait": 3600.0}),
    (partial(fixed, wait=5), {"policy": "fixed", "wait": 5}),
    (
        partial(exponential, base=1, cap=HOUR, jitter=False),
        {"policy": "exponential", "base": 1, "cap": 3600.0, "jitter": False},
    ),
]


@pytest.mark.parametrize(("backoff", "stored"), STORED)
def test_a_named_policy_can_be_stored_and_read_again(
    backoff: Any, stored: dict[str, Any]
) -> None:
    assert stored_form(backoff) == stored
    text = json.dumps(stored, allow_nan=False)
    again = from_stored_form(json.loads(text))
    assert stored_form(again) == stored


@pytest.mark.parametrize(
    "backoff",
    [one, three, OfThree(), partial(one_and_default, most=5), respect_retry_after],
)
def test_a_function_cannot_be_stored(backoff: Any) -> None:
    assert stored_form(backoff) is None


@pytest.mark.parametrize(
    "stored",
    [
        None,
        5,
        "fixed",
        [],
        {},
        {"policy": "mine"},
        {"policy": []},
        {"policy": "fixed", "wait": "5"},
        {"policy": "fixed", "wait": None},
        {"policy": "fixed", "waits": 5},
        {"policy": "immediate", "attempt": 5},
        {"policy": "exponential", "jitter": 1, "cap": []},
    ],
)
def test_what_plain_sql_stores_instead_of_a_policy_is_refused(stored: Any) -> None:
    with pytest.raises(ValueError, match="is no backoff"):
        from_stored_form(stored)


class Mine:
    def __call__(self, attempt: int) -> timedelta:
        return HOUR


def mine(attempt: int) -> timedelta:
    return HOUR


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        *((policy, name) for name, policy in POLICIES.items()),
        (partial(fixed, wait=HOUR), "fixed(wait=1:00:00)"),
        (
            partial(exponential, base=SECOND, jitter=False),
            "exponential(base=0:00:01, jitter=False)",
        ),
        (mine, "mine"),
        (Mine(), "Mine"),
        (lambda attempt: HOUR, "<lambda>"),
    ],
)
def test_a_policy_has_a_name_for_people(policy: Backoff, name: str) -> None:
    assert describe(policy) == name
