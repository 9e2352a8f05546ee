"""Checks that the verbs share: ids, moments, priorities and queues."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from django_jobqueue.conf import GREATEST, conf
from django_jobqueue.domain.arguments import to_json
from django_jobqueue.domain.ids import several
from django_jobqueue.domain.operation_options import Options
from django_jobqueue.domain.option_checks import time_problem
from django_jobqueue.domain.policy import (
    attempts_problem,
    name_of,
    priority_problem,
    queue_problem,
)
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.states import ReplayExpiry, SkipReplayed
from django_jobqueue.domain.weights import check_weight
from django_jobqueue.enqueueing.options import Declared, expires_first
from django_jobqueue.exceptions import InvalidArguments, UnknownJobType
from django_jobqueue.store import find as store_find
from django_jobqueue.store.connection import Database
from django_jobqueue.text import timezones

Name = str | Declared
Names = Name | Iterable[Name]
Expires = ReplayExpiry | str | datetime

EXPIRIES: Final = (ReplayExpiry.SAME, ReplayExpiry.KEEP, ReplayExpiry.NEVER)


def names_of(names: Names) -> list[str]:
    """These names, or this one; a handler stands for its job type. Raises
    InvalidArguments."""
    return [one_name(name) for name in several(names)]


def one_name(name: Name) -> str:
    """This name; a handler stands for its job type. Raises InvalidArguments."""
    text = name_of(name)
    if isinstance(text, str) and text:
        return text
    raise InvalidArguments(f"A name must be a string, not {text!r}.")


def checked_moment(name: str, moment: datetime | None) -> datetime | None:
    """The same moment, with a time zone. Raises InvalidArguments."""
    if problem := time_problem(name, moment, "a datetime"):
        raise InvalidArguments(problem)
    return None if moment is None else timezones.aware(moment)


def check(*, priority: int | None = None, queue: str | None = None) -> None:
    """Raises InvalidArguments for what no job can have."""
    if priority is not None and (problem := priority_problem(priority)):
        raise InvalidArguments(f"priority {problem}")
    if queue is not None and (problem := queue_problem(queue)):
        raise InvalidArguments(f"queue {problem}")


def checked_options(options: Options, **given: Any) -> Options:
    """These options, with those that are given. Raises InvalidArguments."""
    if "expires" in given:
        given["expires"], given["expires_at"] = _expires(given["expires"])
    if "skip_replayed" in given:
        given["skip_replayed"] = _skip_replayed(given["skip_replayed"])
    for name in given.keys() - set(options._fields):
        raise InvalidArguments(f"An operation has no such option: {name}.")
    options = options._replace(**given)
    check(priority=options.priority, queue=options.queue)
    check_attempts(options.max_attempts)
    check_number("limit", options.limit)
    run_after = checked_moment("run_after", options.run_after)
    if run_after and options.expires_at and options.expires_at <= run_after:
        raise InvalidArguments(expires_first(run_after, options.expires_at))
    return options._replace(run_after=run_after)


def check_number(name: str, number: int | None) -> None:
    """Raises InvalidArguments for what is no number of jobs."""
    if number is not None and not 1 <= number <= GREATEST:
        raise InvalidArguments(f"{name} must be a whole number of at least 1.")


def _expires(value: Expires) -> tuple[ReplayExpiry, datetime | None]:
    if isinstance(value, datetime):
        return ReplayExpiry.NEW, checked_moment("expires", value)
    if value in EXPIRIES:
        return ReplayExpiry(value), None
    names = ", ".join(repr(str(name)) for name in EXPIRIES)
    raise InvalidArguments(f"expires must be {names} or a datetime, not {value!r}.")


def _skip_replayed(value: str) -> SkipReplayed:
    if value in tuple(SkipReplayed):
        return SkipReplayed(value)
    names = ", ".join(repr(str(name)) for name in SkipReplayed)
    raise InvalidArguments(f"skip_replayed must be one of {names}, not {value!r}.")


def must_exist(db: Database, names: Iterable[str], existing: Collection[str]) -> None:
    """Raises UnknownJobType for the first of these job types that was not found."""
    for name in names:
        if name not in existing:
            near = registry.near(name, store_find.known_names(db))
            raise UnknownJobType(name, near)


def check_attempts(max_attempts: int | None) -> None:
    """Raises InvalidArguments for a number of attempts that no job can have."""
    if max_attempts is not None and (problem := attempts_problem(max_attempts)):
        raise InvalidArguments(f"max_attempts {problem}")


def check_call(job_type: str, data: Mapping[str, Any]) -> None:
    """Raises InvalidArguments for data that do not fit the handler, if it is known
    here, or are too large."""
    declaration = registry.get(job_type)
    if declaration and (problem := declaration.parameters.call_problem(dict(data))):
        raise InvalidArguments(problem)
    to_json(dict(data), limit=conf.max_data_bytes)


def checked_data(
    job_type: str, data: Mapping[str, Any], *, weight: int | None = None
) -> str:
    """The JSON text of data that an enqueue with this ``weight`` would take. Raises
    InvalidArguments."""
    if not isinstance(data, Mapping):
        raise InvalidArguments(f"data must be an object, not {type(data).__name__}.")
    check_call(job_type, data)
    declaration = registry.get(job_type)
    if declaration is not None:
        check_weight(declaration.policy, weight, data)
    return to_json(dict(data), limit=conf.max_data_bytes)
