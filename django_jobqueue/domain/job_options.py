"""Every option of a job: how it is checked, its normal form, and who may state it.

``@job``, ``using()``, ``enqueue()`` by name and the backend for Django's tasks read
this table.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from django_jobqueue import retries
from django_jobqueue.conf import CAPTURES
from django_jobqueue.domain.databases import alias_problem
from django_jobqueue.domain.ids import as_id
from django_jobqueue.domain.policy import (
    LONGEST,
    ON_DUPLICATE,
    UNIQUE_UNTIL,
    UNSET,
    WHO_LENGTH,
    Policy,
    Problem,
    Unset,
    attempts_problem,
    duration_problem,
    job_type_problem,
    name_of,
    one_of,
    priority_problem,
    queue_problem,
    to_duration,
    whole,
)
from django_jobqueue.domain.states import Delivery
from django_jobqueue.retries import Backoff
from django_jobqueue.text import timezones
from django_jobqueue.text.foreign_words import option_hint
from django_jobqueue.text.suggestions import did_you_mean


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option, of a job type or of one job."""

    problem: Problem  # None if a value is right, else words that follow its name
    normal: Callable[[Any], Any] = _same  # makes the value that is kept
    of_type: bool = False  # @job takes it
    of_job: bool = False  # using() takes it, and None, which leaves it to the type
    type_takes: tuple[object, ...] = ()  # values of @job that need no check

    def problem_for_type(self, value: object) -> str | None:
        """Why ``@job`` cannot have this value, in words that follow the name."""
        if any(value is taken for taken in self.type_takes):
            return None
        return self.problem(value)


def several_times(value: Any) -> Any:
    """What can be looked at only once, such as a generator, as a tuple."""
    return tuple(value) if isinstance(value, Iterator) else value


def time_problem(name: str, value: object, kinds: str) -> str | None:
    """What is wrong with this moment, as a sentence."""
    problem = None if value is None else _moment_problem(value, kinds)
    return problem and f"{name} {problem}"


def _moment_problem(value: object, kinds: str) -> str | None:
    if not isinstance(value, datetime):
        return f"must be {kinds}, not {value!r}.{_moment_hint(value, kinds)}"
    if settings.USE_TZ and timezone.is_naive(value):
        return (
            f"must be aware of its time zone; {value!r} is naive. Write "
            "timezone.now(), or timezone.make_aware(…)."
        )
    return None


def _moment_hint(value: object, kinds: str) -> str:
    """What to write instead of a span of time, as a sentence that follows."""
    if isinstance(value, timedelta):
        return " Write timezone.now() + timedelta(…)."
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    before = "" if "timedelta" in kinds else "timezone.now() + "
    return f" Write {before}timedelta(seconds={value:g})."


def _run_after_problem(value: object) -> str | None:
    if not isinstance(value, timedelta):
        return _moment_problem(value, "a datetime or a timedelta")
    if value > LONGEST:
        return f"must be at most {LONGEST.days:,} days away, not {value}."
    return None


def _expires_at_problem(value: object) -> str | None:
    if isinstance(value, timedelta):
        return f"must be a datetime, not {value!r}. Write expires_in=…, a span of time."
    return _moment_problem(value, "a datetime")


def _tags_problem(value: object) -> str | None:
    several = isinstance(value, Iterable) and not isinstance(value, str)
    if several and all(isinstance(tag, str) for tag in value):  # type: ignore[attr-defined]
        return None
    return f"must be a list of strings, not {value!r}."


def _who_problem(value: object) -> str | None:
    if isinstance(value, str) and len(value) <= WHO_LENGTH:
        return None
    return f"must be a string of at most {WHO_LENGTH} characters."


def _metadata_problem(value: object) -> str | None:
    if isinstance(value, Mapping):
        return None
    return f"must be a dict, not {value!r}."


def _text_problem(value: object) -> str | None:
    if isinstance(value, str) and value:
        return None
    return f"must be a string that is not empty, not {value!r}."


def _nothing(value: object) -> None:
    """Its conversion finds what is wrong with it."""


def _backoff(value: object) -> str | None:
    if isinstance(value, str) and value not in retries.POLICIES:
        return f"must be one of {', '.join(retries.POLICIES)}, not {value!r}."
    if isinstance(value, str) or duration_problem(value) is None or callable(value):
        return None
    return (
        f"must be a policy's name, a wait, or a function of the attempt, not {value!r}."
    )


def _delivery(value: object) -> str | None:
    if value in Delivery.values:
        return None
    return f"must be one of {', '.join(Delivery.values)}, not {value!r}."


def _switch(value: object) -> str | None:
    return None if isinstance(value, bool) else f"must be True or False, not {value!r}."


def _exceptions(value: object) -> str | None:
    classes = _to_tuple(value)
    if all(inspect.isclass(c) and issubclass(c, BaseException) for c in classes):
        return None
    return f"must be a tuple of exception classes, not {value!r}."


def _words(value: object) -> str | None:
    several = isinstance(value, Iterable) and not isinstance(value, str)
    if several and all(isinstance(word, str) for word in value):  # type: ignore[attr-defined]
        return None
    return f"must be a tuple of names of parameters or keys, not {value!r}."


def _unique(value: object) -> str | None:
    if isinstance(value, bool) or (value and _words(value) is None):
        return None
    return f"must be True, or a tuple of names of parameters, not {value!r}."


def _capture(value: object) -> str | None:
    wrong = [word for word in _to_tuple(value) if word not in CAPTURES]
    if not wrong and not isinstance(value, str):
        return None
    return (
        f"must be a tuple out of {' and '.join(map(repr, CAPTURES))}, "
        f"not {value!r}.{did_you_mean(next(iter(wrong), value), CAPTURES)}"
    )


def _middleware(value: object) -> str | None:
    several = isinstance(value, Iterable) and not isinstance(value, str)
    if several and all(isinstance(one, str) or callable(one) for one in value):  # type: ignore[attr-defined]
        return None
    return f"must be a tuple of dotted paths or callables, not {value!r}."


def _moment(value: Any) -> Any:
    """Times without a zone are as Django's, where it has none."""
    return timezones.aware(value) if isinstance(value, datetime) else value


def _due(value: Any) -> Any:
    """A wait below zero is none."""
    return max(value, timedelta(0)) if isinstance(value, timedelta) else _moment(value)


def _to_id(value: Any) -> Any:
    return None if value is None else as_id(value)


def _to_tags(value: Any) -> tuple[str, ...]:
    return tuple(value or ())


def _to_dict(value: Any) -> dict[str, Any] | None:
    return None if value is None else dict(value)


def _to_backoff(value: Any) -> Backoff:
    if isinstance(value, str):
        return retries.POLICIES[value]
    if callable(value):
        return value  # type: ignore[no-any-return]
    wait = value if isinstance(value, timedelta) else timedelta(seconds=value)
    return partial(retries.fixed, wait=wait)


def _to_tuple(value: Any) -> tuple[Any, ...]:
    several = isinstance(value, Iterable) and not isinstance(value, str)
    return tuple(value) if several else (value,)


def _to_unique(value: Any) -> bool | tuple[str, ...]:
    return value if isinstance(value, bool) else tuple(value)


def _to_capture(value: Any) -> tuple[str, ...] | Unset:
    return value if isinstance(value, Unset) else tuple(value)


_of_type: Final = partial(Option, of_type=True)
_of_job: Final = partial(Option, of_job=True)
_of_both: Final = partial(Option, of_type=True, of_job=True)

OPTIONS: Final[Mapping[str, Option]] = {
    # Of one job.
    "run_after": _of_job(problem=_run_after_problem, normal=_due),
    "expires_at": _of_job(problem=_expires_at_problem, normal=_moment),
    "metadata": _of_job(problem=_metadata_problem, normal=_to_dict),
    "tags": _of_job(problem=_tags_problem, normal=_to_tags),
    "unique_key": _of_job(problem=_text_problem),
    "id": _of_job(problem=_nothing, normal=_to_id),
    "enqueued_by": _of_job(problem=_who_problem),
    "using": _of_job(problem=alias_problem),
    # Of a job type, and of one job instead.
    "queue": _of_both(problem=queue_problem),
    "priority": _of_both(problem=priority_problem),
    "max_attempts": _of_both(problem=attempts_problem, type_takes=(UNSET, None)),
    "expires_in": _of_both(
        problem=duration_problem, normal=to_duration, type_takes=(None,)
    ),
    "on_complete": _of_both(
        problem=job_type_problem, normal=name_of, type_takes=(None,)
    ),
    "unique_until": _of_both(problem=one_of(*UNIQUE_UNTIL)),
    "on_duplicate": _of_both(problem=one_of(*ON_DUPLICATE)),
    # Of a job type.
    "backoff": _of_type(problem=_backoff, normal=_to_backoff),
    "timeout": _of_type(
        problem=duration_problem, normal=to_duration, type_takes=(UNSET, None)
    ),
    "delivery": _of_type(problem=_delivery, normal=Delivery),
    "concurrency": _of_type(problem=whole(0), type_takes=(None,)),
    "atomic": _of_type(problem=_switch),
    "max_crashes": _of_type(problem=whole(1), type_takes=(UNSET,)),
    "retry_for": _of_type(problem=_exceptions, normal=_to_tuple),
    "permanent": _of_type(problem=_exceptions, normal=_to_tuple),
    "takes_context": _of_type(problem=_switch),
    "sensitive": _of_type(problem=_words, normal=frozenset),
    "unique": _of_type(problem=_unique, normal=_to_unique),
    "capture": _of_type(problem=_capture, normal=_to_capture, type_takes=(UNSET,)),
    "middleware": _of_type(problem=_middleware, normal=tuple),
}
OF_TYPE: Final = {name: option for name, option in OPTIONS.items() if option.of_type}
OF_JOB: Final = {name: option for name, option in OPTIONS.items() if option.of_job}


def policy_of(where: str, options: dict[str, Any]) -> Policy:
    """The policy that these options of ``@job`` state; ``where`` names the function.

    Raises ImproperlyConfigured, with a sentence that says which option and why.
    """
    values = {name: several_times(value) for name, value in options.items()}
    for name, value in values.items():
        if name not in OF_TYPE:
            handler = where.rpartition(".")[2]
            hint = _of_one_job(name, handler) or option_hint(name, OF_TYPE, handler)
            raise ImproperlyConfigured(
                f"@job on {where}: there is no option {name!r}.{hint}"
            )
        if problem := OF_TYPE[name].problem_for_type(value):
            raise ImproperlyConfigured(f"@job on {where}: {name} {problem}")
    policy = Policy(
        **{name: OF_TYPE[name].normal(value) for name, value in values.items()}
    )
    if problem := _combination(policy):
        raise ImproperlyConfigured(f"@job on {where}: {problem}")
    return policy


def _combination(policy: Policy) -> str | None:
    if policy.delivery == Delivery.AT_MOST_ONCE:
        if policy.max_attempts not in (UNSET, 1):
            return (
                "delivery='at_most_once' allows one attempt, so max_attempts must be 1."
            )
        if policy.retry_for:
            return "delivery='at_most_once' never retries, so retry_for has no effect."
    return None


def option_of_types(name: str) -> str:
    """A sentence that follows the name of an option which one job cannot have, if all
    jobs of a type can."""
    if name not in OF_TYPE:
        return ""
    return f" It holds for all jobs of a type: @job({name}=…)."


def _of_one_job(name: str, handler: str) -> str:
    if name not in OF_JOB:
        return ""
    return f" It belongs to one job: {handler}.using({name}=…).enqueue(…)."
