"""Backoff policies: how long to wait before the next attempt.

A policy is a plain function of the number of the attempt that failed (1 for the
first) that returns a ``timedelta``, or raises ``Fail`` if there should be no further
attempt. The named ones below take keyword arguments, so
``functools.partial(exponential, base=timedelta(seconds=1))`` is a policy, too.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta

Backoff = Callable[[int], timedelta]

MINUTE = timedelta(minutes=1)
LONGEST = timedelta(days=365)


def exponential(
    attempt: int,
    *,
    base: timedelta = timedelta(seconds=10),
    cap: timedelta = timedelta(hours=1),
    jitter: bool = True,
) -> timedelta:
    """Up to base, twice that, four times that, …, with full jitter and a cap.

    Full jitter is a uniform draw from zero to the bound, which spreads a crowd of
    retries best: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """
    tick = timedelta.resolution  # a doubled timedelta could overflow; an int cannot
    bound = min(cap // tick, (base // tick) << min(attempt - 1, 40)) * tick
    return bound * random.random() if jitter else bound


def quartic(attempt: int) -> timedelta:
    """attempt⁴ + 15 + a draw of 0…29 times (attempt + 1), in seconds (gocraft/work)."""
    seconds = attempt**4 + 15 + random.randrange(30) * (attempt + 1)
    return timedelta(seconds=min(seconds, LONGEST.total_seconds()))


def decorrelated(
    attempt: int,
    *,
    base: timedelta = MINUTE,
    cap: timedelta = timedelta(minutes=30),
) -> timedelta:
    """Draw a wait between base and three times the wait before, which is drawn again.

    "Decorrelated jitter" of the AWS article named at ``exponential``. The policy keeps
    no state: the waits of the attempts before are drawn again, from the same
    distribution.
    """
    wait = base
    for _ in range(min(attempt, 40)):
        wait = min(cap, base + (wait * 3 - base) * random.random())
    return wait


def fixed(attempt: int, *, wait: timedelta = MINUTE) -> timedelta:
    """The same wait each time, by default one minute."""
    return wait


def immediate(attempt: int) -> timedelta:
    """No wait."""
    return timedelta(0)


def rickover(attempt: int) -> timedelta:
    """2, 4, 8, … seconds: no jitter, no cap short of a year."""
    return timedelta(seconds=min(2 ** min(attempt, 40), LONGEST.total_seconds()))


POLICIES: dict[str, Backoff] = {
    policy.__name__: policy
    for policy in (exponential, quartic, decorrelated, fixed, immediate, rickover)
}


def wait_before_next(backoff: Backoff, attempt: int) -> timedelta:
    """The policy's wait after this attempt, forced into what a database can add.

    A policy that returns something else than a timedelta is a programming error and
    raises; the caller falls back to ``exponential`` and logs it.
    """
    wait = backoff(attempt)
    if not isinstance(wait, timedelta):
        raise TypeError(
            f"The backoff {describe(backoff)} returned {wait!r}; it must return a "
            "timedelta."
        )
    return within_bounds(wait)


def within_bounds(wait: timedelta) -> timedelta:
    """The wait nearest to this one that a database can add to the present time."""
    return min(max(wait, timedelta(0)), LONGEST)


def describe(backoff: Backoff) -> str:
    """A policy's name for people: ``exponential``, ``my_backoff``."""
    for name, policy in POLICIES.items():
        if policy is backoff:
            return name
    function = getattr(backoff, "func", backoff)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    options = ", ".join(
        f"{key}={value}" for key, value in getattr(backoff, "keywords", {}).items()
    )
    return f"{name}({options})" if options else name
