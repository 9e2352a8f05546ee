"""Backoff policies: within their bounds for every attempt and every draw."""

from __future__ import annotations

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
    immediate,
    quartic,
    rickover,
    wait_before_next,
)

DRAWS = 500
HUGE = [40, 41, 64, 1_000, 10**6, 10**30]
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


def draws(policy: Backoff, attempt: int) -> list[timedelta]:
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
def test_no_attempt_is_too_many(policy: Backoff, attempt: int) -> None:
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


@pytest.mark.parametrize("returned", [5, 0.5, None, "60", True])
def test_a_policy_must_return_a_timedelta(returned: Any) -> None:
    def mine(attempt: int) -> Any:
        return returned

    with pytest.raises(TypeError) as caught:
        wait_before_next(mine, 1)
    assert str(caught.value) == (
        "The backoff test_a_policy_must_return_a_timedelta.<locals>.mine returned "
        f"{returned!r}; it must return a timedelta."
    )


@pytest.mark.parametrize(
    ("returned", "wait"),
    [
        (timedelta(seconds=-1), timedelta(0)),
        (timedelta.min, timedelta(0)),
        (timedelta.max, LONGEST),
        (LONGEST + SECOND, LONGEST),
        (HOUR, HOUR),
    ],
)
def test_a_wait_is_forced_into_what_a_database_can_add(
    returned: timedelta, wait: timedelta
) -> None:
    assert wait_before_next(lambda attempt: returned, 1) == wait


def test_the_policy_is_asked_with_the_number_of_the_attempt() -> None:
    asked: list[int] = []

    def mine(attempt: int) -> timedelta:
        asked.append(attempt)
        return HOUR

    wait_before_next(mine, 4)
    assert asked == [4]


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


def test_the_named_policies_are_those_of_the_docs() -> None:
    assert list(POLICIES) == [
        "exponential",
        "quartic",
        "decorrelated",
        "fixed",
        "immediate",
        "rickover",
    ]
