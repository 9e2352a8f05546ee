"""Backoff policies: how long to wait before the next attempt.

A policy is a function of ``attempt``, the number of the attempt that failed (1 for the
first), or of ``(attempt, exception, job)``. It returns seconds or a ``timedelta``, or
None to leave the wait to the next policy: of the exception's rule, of the job, of its
type, and last ``exponential``. It may raise ``Fail``: no further attempt.

The named ones below take keyword arguments, so
``functools.partial(exponential, base=1)`` is a policy, too.
"""

from __future__ import annotations

import inspect
import random
import re
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.utils.http import parse_http_date_safe

Wait = timedelta | float  # seconds
# Any: a function may name the class of its exception, and ``job`` is a Context.
Backoff = Callable[[int], Wait | None] | Callable[[int, Any, Any], Wait | None]

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
LONGEST = timedelta(days=365)


def exponential(
    attempt: int,
    *,
    base: Wait = timedelta(seconds=10),
    cap: Wait = timedelta(hours=1),
    jitter: bool = True,
) -> timedelta:
    """Up to base, twice that, four times that, …, with full jitter and a cap.

    Full jitter is a uniform draw from zero to the bound, which spreads a crowd of
    retries best: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """
    tick = timedelta.resolution  # a doubled timedelta could overflow; an int cannot
    most, first = as_wait(cap) // tick, as_wait(base) // tick
    bound = min(most, first << min(attempt - 1, 40)) * tick
    return bound * random.random() if jitter else bound


def quartic(attempt: int) -> timedelta:
    """attempt⁴ + 15 + a draw of 0…29 times (attempt + 1), in seconds (gocraft/work)."""
    seconds = attempt**4 + 15 + random.randrange(30) * (attempt + 1)
    return timedelta(seconds=min(seconds, LONGEST.total_seconds()))


def decorrelated(
    attempt: int,
    *,
    base: Wait = MINUTE,
    cap: Wait = timedelta(minutes=30),
) -> timedelta:
    """Draw a wait between base and three times the wait before, which is drawn again.

    "Decorrelated jitter" of the AWS article named at ``exponential``. The policy keeps
    no state: the waits of the attempts before are drawn again, from the same
    distribution.
    """
    wait = least = as_wait(base)
    most = as_wait(cap)
    for _ in range(min(attempt, 40)):
        wait = min(most, least + (wait * 3 - least) * random.random())
    return wait


def fixed(attempt: int, *, wait: Wait = MINUTE) -> timedelta:
    """The same wait each time, by default one minute."""
    return as_wait(wait)


def immediate(attempt: int) -> timedelta:
    """No wait."""
    return timedelta(0)


def rickover(attempt: int) -> timedelta:
    """2, 4, 8, … seconds: no jitter, no cap short of a year."""
    return timedelta(seconds=min(2 ** min(attempt, 40), LONGEST.total_seconds()))


NAMED: Final = (exponential, quartic, decorrelated, fixed, immediate, rickover)
POLICIES: dict[str, Callable[..., timedelta]] = {
    policy.__name__: policy for policy in NAMED
}


def retry_after(source: object, *, cap: Wait = DAY) -> timedelta | None:
    """The wait that a server asks for in ``Retry-After``, at most ``cap``.

    ``source`` is the header's value (seconds, or an HTTP date), a mapping of headers, a
    response that has ``headers``, or an exception that has such a response or headers,
    as those of requests, httpx, aiohttp and urllib do. Returns None if there is no such
    header or its value is invalid, so ``Retry(after=retry_after(response))`` falls back
    to the backoff. A date in the past means no wait.
    """
    value = _header_in(source)
    seconds = _seconds_of(value) if isinstance(value, str) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float | timedelta):
        return None
    try:
        wait = as_wait(seconds)
    except TypeError:
        return None
    return None if wait < timedelta(0) else min(wait, as_wait(cap))


def respect_retry_after(
    attempt: int,
    exception: BaseException,
    job: object,
    *,
    cap: Wait = DAY,
    jitter: bool = True,
) -> timedelta | None:
    """The wait of ``retry_after(exception)``, and up to a tenth more, so that jobs
    refused together do not return together. None, which leaves the wait to the next
    policy, if the exception has no such header.
    """
    wait = retry_after(exception, cap=cap)
    if wait is None or not jitter:
        return wait
    return min(wait * (1 + random.random() / 10), as_wait(cap))


def _header_in(source: object) -> Any:
    """The value of the header; None if the source has none."""
    if isinstance(source, str | int | float | timedelta):
        return source
    headers: object = source
    if not isinstance(source, Mapping):
        # Not "or": a response of requests is false if it is an error.
        response = getattr(source, "response", None)
        headers = getattr(source if response is None else response, "headers", None)
    items = getattr(headers, "items", None)
    if not callable(items):
        return None
    return next((value for name, value in items() if _is_retry_after(name)), None)


def _is_retry_after(name: object) -> bool:
    return isinstance(name, str) and name.lower() == "retry-after"


def _seconds_of(value: str) -> float | None:
    """The seconds from now that the header's value states."""
    value = value.strip()
    if re.fullmatch(r"[0-9]{1,18}(\.[0-9]{0,9})?", value):
        return float(value)
    moment = parse_http_date_safe(value)
    if moment is None:
        return None
    return max(0.0, moment - time.time())


def wait_after(
    backoff: Backoff,
    attempt: int,
    exception: BaseException,
    job: Callable[[], object] | None,
) -> timedelta | None:
    """The policy's wait after this attempt, forced into what a database can add; None
    if it leaves the wait to the next policy.

    ``job`` returns the Context, for policies that take it. Raises TypeError for a
    policy that returns something else than a wait, and whatever the policy raises.
    """
    function: Callable[..., Any] = backoff
    if sees_exception(function):
        value = function(attempt, exception, job and job())
    else:
        value = function(attempt)
    if value is None:
        return None
    try:
        return within_bounds(as_wait(value))
    except TypeError:
        if inspect.iscoroutine(value):
            value.close()  # or Python warns that nobody awaited it
        raise TypeError(
            f"The backoff {describe(backoff)} returned {value!r}; it must return "
            "seconds, a timedelta or None."
        ) from None


def sees_exception(function: Callable[..., Any]) -> bool:
    """True if this policy takes ``(attempt, exception, job)``, not ``attempt`` alone.
    Parameters that have defaults do not count."""
    required, takes_more = _required(function)
    return takes_more or required > 1


def function_problem(function: Callable[..., Any]) -> str | None:
    """Why this function is no policy, in words that follow the option's name."""
    if stored_form(function) is not None:  # ours, so it can be tried
        try:
            function(1)
        except (TypeError, ValueError, OverflowError) as error:
            return f"has wrong arguments: {error}."
        return None
    if inspect.iscoroutinefunction(function):
        return f"must not be an async function: {describe(function)}."
    arguments = (1, None, None) if sees_exception(function) else (1,)
    try:
        inspect.signature(function).bind(*arguments)
    except (TypeError, ValueError) as error:
        if isinstance(error, ValueError) and not isinstance(function, partial):
            return None  # it is written in C, and has no signature
        return (
            "must be a function of (attempt) or of (attempt, exception, job), and "
            f"{describe(function)} is not: {error}."
        )
    return None


def _required(function: Callable[..., Any]) -> tuple[int, bool]:
    """How many positional arguments it needs, and whether it takes any number."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return 1, False
    positional = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    required = [p for p in parameters if p.kind in positional and p.default is p.empty]
    takes_more = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return len(required), takes_more


def stored_form(backoff: Backoff) -> dict[str, Any] | None:
    """A named policy as JSON values: ``{"policy": "fixed", "wait": 30.0}``; None for a
    function, which cannot be stored."""
    is_partial = isinstance(backoff, partial)
    function: Any = backoff.func if is_partial else backoff  # type: ignore[union-attr]
    is_named = any(function is policy for policy in NAMED)
    if not is_named or (is_partial and backoff.args):  # type: ignore[union-attr]
        return None
    given = backoff.keywords if is_partial else {}  # type: ignore[union-attr]
    return {"policy": function.__name__, **{k: _plain(v) for k, v in given.items()}}


def _plain(value: object) -> object:
    return value.total_seconds() if isinstance(value, timedelta) else value


def from_stored_form(stored: object) -> Backoff:
    """The policy of ``stored_form``. Plain SQL may have written anything: raises
    ValueError."""
    name = stored.get("policy") if isinstance(stored, dict) else None
    if isinstance(stored, dict) and isinstance(name, str) and name in POLICIES:
        given = {key: value for key, value in stored.items() if key != "policy"}
        policy = POLICIES[name]
        backoff = partial(policy, **given) if given else policy
        if function_problem(backoff) is None:
            return backoff
    raise ValueError(f"{stored!r} is no backoff.")


def as_wait(value: Wait) -> timedelta:
    """A wait as a timedelta, of at most a year. Raises TypeError for something else."""
    if isinstance(value, timedelta):
        return min(value, LONGEST)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or value != value  # NaN
    ):
        raise TypeError(f"{value!r} is neither a timedelta nor a number of seconds")
    year = LONGEST.total_seconds()
    return timedelta(seconds=min(max(value, -year), year))


def within_bounds(wait: timedelta) -> timedelta:
    """The wait nearest to this one that a database can add to the present time."""
    return min(max(wait, timedelta(0)), LONGEST)


def describe(backoff: Callable[..., Any]) -> str:
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
