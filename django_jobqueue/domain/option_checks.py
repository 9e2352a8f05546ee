"""Checks and normal forms of option values, from which the table of options is made.

A check returns None if the value is right, else a sentence that follows the option's
name.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

from django_jobqueue import retries
from django_jobqueue.conf import CAPTURES
from django_jobqueue.domain.ids import as_id
from django_jobqueue.domain.policy import (
    LONGEST,
    READABLE,
    UNIQUE_UNTIL,
    WHO_LENGTH,
    Unset,
    attempts_problem,
    duration_problem,
    one_of,
)
from django_jobqueue.domain.retry_rules import ExceptionRule, RetryRule, path_of
from django_jobqueue.domain.states import Delivery
from django_jobqueue.exceptions import (
    ClaimLost,
    InvalidArguments,
    InvalidResult,
    JobControl,
)
from django_jobqueue.retries import Backoff
from django_jobqueue.text import data_summary, timezones
from django_jobqueue.text.foreign_words import ATTEMPTS
from django_jobqueue.text.suggestions import did_you_mean

# What follows these is decided before any rule: see retry_decision.py.
BEYOND_RULES: Final = (JobControl, InvalidArguments, InvalidResult, ClaimLost)
LONGEST_KEY: Final = 100
_UNTIL_WORDS = ", ".join(map(repr, UNIQUE_UNTIL))


def always_right(value: object) -> None:
    """The check of an option whose normal form raises for a wrong value."""


def time_problem(name: str, value: object, accepted: str) -> str | None:
    """Why this is no moment, as a sentence; None if it is one."""
    problem = None if value is None else moment_problem(value, accepted)
    return problem and f"{name} {problem}"


def moment_problem(value: object, accepted: str) -> str | None:
    """Why this is not a moment; ``accepted`` names the types that the option takes."""
    if not isinstance(value, datetime):
        return f"must be {accepted}, not {value!r}.{_moment_hint(value, accepted)}"
    if settings.USE_TZ and timezone.is_naive(value):
        return (
            f"must be aware of its time zone; {value!r} is naive. Write "
            "timezone.now(), or timezone.make_aware(…)."
        )
    earliest, latest = READABLE
    if not earliest <= timezones.aware(value) <= latest:
        return f"must be from {earliest.date()} to {latest.date()}, not {value}."
    return None


def _moment_hint(value: object, accepted: str) -> str:
    """The moment to write instead of a duration, as a sentence."""
    if isinstance(value, timedelta):
        return " Write timezone.now() + timedelta(…)."
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    start = "" if "timedelta" in accepted else "timezone.now() + "
    return f" Write {start}timedelta(seconds={value:g})."


def run_after_problem(value: object) -> str | None:
    if not isinstance(value, timedelta):
        return moment_problem(value, "a datetime or a timedelta")
    if value > LONGEST:
        return f"must be at most {LONGEST.days:,} days away, not {value}."
    return None


def expires_at_problem(value: object) -> str | None:
    if isinstance(value, timedelta):
        return f"must be a datetime, not {value!r}. For a duration write expires_in=…."
    return moment_problem(value, "a datetime")


def tags_problem(value: object) -> str | None:
    if _is_of_strings(value):
        return None
    return f"must be a list of strings, not {value!r}."


def who_problem(value: object) -> str | None:
    if isinstance(value, str) and len(value) <= WHO_LENGTH:
        return None
    return f"must be a string of at most {WHO_LENGTH:,} characters."


# Keys of the metadata that schedules, and cancelled jobs of endpoints, are known by.
OURS: Final = frozenset(("schedule", "fires_at", "cancel_sent"))


class FiringMetadata(dict[str, Any]):
    """The metadata of a schedule's job, which alone may have what firings write."""


def metadata_problem(value: object) -> str | None:
    if not isinstance(value, Mapping):
        return f"must be a dict, not {value!r}."
    taken = [] if isinstance(value, FiringMetadata) else sorted(OURS & value.keys())
    if taken:
        return f"must not have {taken[0]!r}: only django_jobqueue writes it."
    return None


def text_problem(value: object) -> str | None:
    if isinstance(value, str) and value:
        return None
    return f"must be a string that is not empty, not {value!r}."


def backoff_problem(value: object) -> str | None:
    if isinstance(value, str) and value not in retries.POLICIES:
        return (
            f"must be one of {', '.join(retries.POLICIES)}, not {value!r}."
            f"{did_you_mean(value, retries.POLICIES)}"
        )
    if isinstance(value, str) or duration_problem(value) is None:
        return None
    if callable(value):
        return retries.function_problem(value)
    return (
        f"must be a policy's name, a wait, or a function of the attempt, not {value!r}."
    )


def stored_backoff_problem(value: object) -> str | None:
    """Why a job cannot have this backoff of its own, which is a right one."""
    backoff = to_backoff(value)
    if backoff is None or retries.stored_form(backoff) is not None:
        return None
    return (
        f"must be a policy's name, one with arguments, or a wait, not {value!r}: a "
        "function cannot be stored with the job. State it where the handler is "
        "declared, for all of its jobs."
    )


def retry_problem(value: object) -> str | None:
    if not isinstance(value, Mapping):
        return (
            "must be a dict of exception classes and rules, such as {OSError: "
            f"'fixed', KeyError: False}}, not {value!r}.{_hint_of_retry(value)}"
        )
    seen: set[object] = set()
    for key, rule in value.items():
        if problem := _key_problem(key, seen):
            return problem
        if problem := _rule_problem(rule):
            name = ", ".join(map(path_of, to_tuple(key)))
            return f"of {name} {problem}"
    return None


def _hint_of_retry(value: object) -> str:
    if isinstance(value, int):
        return f" {ATTEMPTS}."
    if exceptions_problem(value) is None:
        return " Write {SomeError: True, Exception: False} to retry nothing else."
    return ""


def _key_problem(key: object, seen: set[object]) -> str | None:
    """Why no rule can have this key; ``seen`` has the classes of the rules before."""
    if exceptions_problem(key) is not None or key == ():
        return f"has a key that is no exception class: {key!r}."
    for cls in to_tuple(key):
        if issubclass(cls, BEYOND_RULES):
            return f"cannot have a rule for {path_of(cls)}, which is never retried so."
        if cls in seen:
            return f"has two rules for {path_of(cls)}."
        seen.add(cls)
    return None


def _rule_problem(rule: object) -> str | None:
    if isinstance(rule, bool):
        return None
    if isinstance(rule, int | float):
        return (
            f"must be a rule, not {rule!r}. Write RetryRule(backoff={rule!r}) for "
            f"seconds, or RetryRule(max_attempts={rule!r})."
        )
    if not isinstance(rule, RetryRule):
        problem = backoff_problem(rule)
        is_other = not isinstance(rule, str | timedelta) and not callable(rule)
        if problem and is_other:
            return f"must be True, False, a backoff or a RetryRule, not {rule!r}."
        return problem
    most = rule.max_attempts
    if most is not None and (problem := attempts_problem(most)):
        return f"has a max_attempts that {problem}"
    if rule.backoff is not None and (problem := backoff_problem(rule.backoff)):
        return f"has a backoff that {problem}"
    return None


def delivery_problem(value: object) -> str | None:
    if value in Delivery.values:
        return None
    return f"must be one of {', '.join(Delivery.values)}, not {value!r}."


def switch_problem(value: object) -> str | None:
    return None if isinstance(value, bool) else f"must be True or False, not {value!r}."


def exceptions_problem(value: object) -> str | None:
    classes = to_tuple(value)
    if all(inspect.isclass(c) and issubclass(c, BaseException) for c in classes):
        return None
    return f"must be a tuple of exception classes, not {value!r}."


def names_problem(value: object) -> str | None:
    if _is_of_strings(value):
        return None
    return f"must be a tuple of names of parameters or keys, not {value!r}."


def paths_problem(value: object) -> str | None:
    if _is_of_strings(value) and not isinstance(value, str):
        paths = [path.split(".") for path in value]  # type: ignore[attr-defined]
        if all(key and len(key) <= LONGEST_KEY for path in paths for key in path):
            return None
    return (
        "must be a tuple of keys of the data, such as ('order_id', 'customer.id'), "
        f"not {value!r}."
    )


def to_tuple_of_names(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(value)))


def summary_problem(value: object) -> str | None:
    if not isinstance(value, str):
        return f"must be a text like 'order {{order_id}}', not {value!r}."
    try:
        data_summary.parts_of(value)
    except ValueError as error:
        return str(error)
    return None


def unique_problem(value: object) -> str | None:
    if isinstance(value, bool) or (value and names_problem(value) is None):
        return None
    return f"must be True, or a tuple of names of parameters, not {value!r}."


def unique_until_problem(value: object) -> str | None:
    if not isinstance(value, str):
        problem = duration_problem(value)
        return problem and f"{problem} Or write one of {_UNTIL_WORDS}."
    return one_of(*UNIQUE_UNTIL)(value)


def capture_problem(value: object) -> str | None:
    wrong = [word for word in to_tuple(value) if word not in CAPTURES]
    if not wrong and not isinstance(value, str):
        return None
    return (
        f"must be a tuple out of {', '.join(map(repr, CAPTURES))}, "
        f"not {value!r}.{did_you_mean(next(iter(wrong), value), CAPTURES)}"
    )


def middleware_problem(value: object) -> str | None:
    is_several = isinstance(value, Iterable) and not isinstance(value, str)
    if is_several and all(isinstance(one, str) or callable(one) for one in value):  # type: ignore[attr-defined]
        return None
    return f"must be a tuple of dotted paths or callables, not {value!r}."


def _is_of_strings(value: object) -> bool:
    if not isinstance(value, Iterable) or isinstance(value, str):
        return False
    return all(isinstance(one, str) for one in value)


def unchanged(value: Any) -> Any:
    return value


def reusable(value: Any) -> Any:
    """An iterator, which can be read only once, as a tuple; other values as they
    are."""
    return tuple(value) if isinstance(value, Iterator) else value


def to_moment(value: Any) -> Any:
    """The moment in Django's time zone, if it has none of its own."""
    return timezones.aware(value) if isinstance(value, datetime) else value


def to_due(value: Any) -> Any:
    """The moment, or the wait; a negative wait is zero."""
    if isinstance(value, timedelta):
        return max(value, timedelta(0))
    return to_moment(value)


def to_id(value: Any) -> Any:
    return None if value is None else as_id(value)


def to_tags(value: Any) -> tuple[str, ...]:
    return tuple(value or ())


def to_dict(value: Any) -> dict[str, Any] | None:
    return None if value is None else dict(value)


def to_backoff(value: Any) -> Backoff | None:
    if value is None:
        return None
    if isinstance(value, str):
        return retries.POLICIES[value]
    if callable(value):
        return value  # type: ignore[no-any-return]
    wait = value if isinstance(value, timedelta) else timedelta(seconds=value)
    return partial(retries.fixed, wait=wait)


def to_retry(value: Mapping[Any, Any]) -> tuple[ExceptionRule, ...]:
    return tuple(
        _to_rule(cls, rule) for key, rule in value.items() for cls in to_tuple(key)
    )


def _to_rule(cls: type[BaseException], rule: Any) -> ExceptionRule:
    if isinstance(rule, bool):
        return ExceptionRule(exception=cls, is_retried=rule)
    if not isinstance(rule, RetryRule):
        rule = RetryRule(backoff=rule)
    return ExceptionRule(
        exception=cls,
        max_attempts=rule.max_attempts,
        backoff=None if rule.backoff is None else to_backoff(rule.backoff),
    )


def to_tuple(value: Any) -> tuple[Any, ...]:
    """A tuple of the elements, or of the one value."""
    is_several = isinstance(value, Iterable) and not isinstance(value, str)
    return tuple(value) if is_several else (value,)


def to_unique(value: Any) -> bool | tuple[str, ...]:
    return value if isinstance(value, bool) else tuple(value)


def to_unique_until(value: Any) -> str | timedelta | None:
    return timedelta(seconds=value) if isinstance(value, int | float) else value


def to_capture(value: Any) -> tuple[str, ...] | Unset:
    return value if isinstance(value, Unset) else tuple(value)
