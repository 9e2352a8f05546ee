"""What the properties are tried on: values, exceptions, policies."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from django_jobqueue import (
    Cancel,
    Context,
    Fail,
    InvalidArguments,
    JobTimeout,
    Retry,
    RetryRule,
    Snooze,
)
from django_jobqueue.domain.option_checks import to_retry
from django_jobqueue.domain.policy import Policy
from django_jobqueue.domain.retry_decision import StopReason
from django_jobqueue.domain.states import Delivery
from django_jobqueue.retries import LONGEST, POLICIES

any_text = st.text(st.characters(exclude_categories=()), max_size=30)  # NUL, surrogates
numbers = (
    st.integers()
    | st.integers(-(10**400), 10**400)
    | st.floats()
    | st.sampled_from([1e16, 1e22, 1e23, 1e300, 5e-324, -0.0, 10**1000])
)
scalars = st.none() | st.booleans() | numbers | any_text
json_values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(any_text, inner, max_size=5)
    ),
    max_leaves=25,
)

not_json = st.sampled_from(
    [(1, 2), {3}, b"x", Decimal("1.5"), datetime.now(UTC), object(), {4: 5}, ((),)]
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars | not_json,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(any_text | st.integers() | st.none(), inner, max_size=4)
    ),
    max_leaves=15,
)

waits = st.timedeltas(timedelta(days=-400), LONGEST)
classes = st.sampled_from(
    [ValueError, KeyError, OSError, TimeoutError, Exception, BaseException, JobTimeout]
)
raised = st.one_of(
    st.none(),
    st.builds(lambda kind: kind("x"), st.sampled_from([ValueError, KeyError, OSError])),
    st.sampled_from([SystemExit(0), KeyboardInterrupt(), GeneratorExit()]),
    st.builds(asyncio.CancelledError),
    st.builds(JobTimeout, any_text),
    st.builds(InvalidArguments, any_text),
    st.builds(Retry, any_text, after=st.none() | waits),
    st.builds(Snooze, waits, any_text),
    st.builds(Fail, any_text),
    st.builds(Cancel, any_text),
)


def bad_backoff(attempt: int) -> timedelta:
    """A policy that fails."""
    raise RuntimeError("no")


def enough(attempt: int, exception: BaseException, job: Context) -> float:
    """A policy that wants no further attempt."""
    raise Fail("enough")


backoffs = st.one_of(
    st.sampled_from([*POLICIES.values(), bad_backoff, enough]),
    st.one_of(st.none(), st.integers(), st.floats(), st.timedeltas(), st.just("x")).map(
        lambda wait: lambda attempt, exception, job: wait
    ),
)
rules = st.dictionaries(
    classes,
    st.booleans()
    | st.builds(
        RetryRule,
        max_attempts=st.none() | st.integers(1, 12),
        backoff=st.none() | backoffs,
    ),
    max_size=4,
).map(to_retry)
policies = st.builds(
    Policy, delivery=st.sampled_from(Delivery), backoff=backoffs, retry=rules
)
attempts = st.integers(1, 12) | st.integers(1, 10**9)
max_attempts = st.none() | st.integers(1, 10)
asked = st.sampled_from(StopReason)


class Weird(Exception):
    """Prints as something else, or not at all."""

    def __init__(self, printed: object) -> None:
        super().__init__()
        self.printed = printed

    def __str__(self) -> str:
        if isinstance(self.printed, BaseException):
            raise self.printed
        return self.printed  # type: ignore[return-value]

    __repr__ = __str__


messages = any_text | st.builds(
    lambda text, n: text * n, any_text, st.integers(0, 3_000)
)
single = st.one_of(
    st.builds(ValueError, messages),
    st.builds(KeyError, messages),
    st.builds(ImportError, messages, name=any_text),
    st.builds(
        Weird,
        messages
        | st.sampled_from(
            [None, 5, ValueError("x"), SystemExit(), KeyboardInterrupt()]
        ),
    ),
    st.builds(SystemExit, st.none() | st.integers() | any_text),
    st.builds(
        UnicodeDecodeError,
        st.just("utf-8"),
        st.binary(max_size=5),
        st.integers(-9, 9),
        st.integers(-9, 9),
        any_text,
    ),
)
groups: st.SearchStrategy[BaseException] = st.recursive(
    single,
    lambda inner: st.builds(
        BaseExceptionGroup, any_text, st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)
