"""Declares schedules: ``handler.at(rule, …)(arguments)``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, Literal, ParamSpec, TypedDict

from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from django_jobqueue.conf import conf
from django_jobqueue.domain.arguments import to_json
from django_jobqueue.domain.option_checks import moment_problem
from django_jobqueue.domain.policy import (
    Problem,
    duration_problem,
    name_problem,
    one_of,
    to_duration,
    whole,
)
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedule_rules import (
    Cron,
    Every,
    ScheduleRule,
    default_time_zone,
)
from django_jobqueue.domain.schedules import (
    Missed,
    MissedPolicy,
    Overlap,
    ScheduleDeclaration,
    schedules,
)
from django_jobqueue.domain.weights import check_weight
from django_jobqueue.enqueueing.options import Options
from django_jobqueue.enqueueing.stored_options import as_stored
from django_jobqueue.text.suggestions import did_you_mean

P = ParamSpec("P")
MOST_MISSED: Final = 1_000
DEFAULT: Final = MissedPolicy()
NOT_OF_SCHEDULES: Final = {
    "run_after": "its rule says when its jobs are due; jitter= spreads them",
    "expires_at": "expires_in= holds for each of its jobs",
    "id": "each of its jobs has an id of its own",
    "unique_until": "declare it where the job type is",
    "on_duplicate": "a firing that finds a duplicate is skipped",
    "debounce": "declare it where the job type is",
    "debounce_max": "declare it where the job type is",
    "using": "schedules are in the database of the setting DATABASE",
}


class ScheduleOptions(TypedDict, total=False):
    """The options of ``at()``."""

    name: str
    """The name of the schedule; by default that of the job type."""
    missed: Literal["once", "skip", "all"]
    """For firings that were due while no worker ran: enqueue one job, none, or one job
    for each."""
    missed_within: timedelta | float
    """Firings that were missed longer ago are not made up for; a day by default."""
    missed_most: int
    """The most jobs that ``missed="all"`` makes at once; 100 by default."""
    overlap: Literal["allow", "skip"]
    """``"skip"`` skips a firing while a job of the schedule is not finished."""
    jitter: timedelta | float
    """Jobs are due up to this much later than their moment."""
    starts: datetime | None
    """The schedule does not fire before this moment."""
    ends: datetime | None
    """The schedule does not fire after this moment."""


def _moment_problem(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or timezone.is_naive(value):
        return f"must be a datetime with its time zone, not {value!r}."
    return moment_problem(value, "a datetime")


_CHECKS: Final[dict[str, Problem]] = {
    "name": name_problem,
    "missed": one_of(*(each.value for each in Missed)),
    "missed_within": duration_problem,
    "missed_most": whole(1),
    "overlap": one_of(*(each.value for each in Overlap)),
    "jitter": duration_problem,
    "starts": _moment_problem,
    "ends": _moment_problem,
}


class ScheduledCall(Generic[P]):
    """A schedule that still needs its arguments: call it with those of the handler."""

    def __init__(
        self, schedule: ScheduleDeclaration, bind: Callable[[tuple[Any, ...], Any], Any]
    ) -> None:
        self._schedule = schedule
        self._bind = bind
        schedules.expect_call(schedule.name)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> ScheduleDeclaration:
        """Declare the schedule with these arguments of its jobs.

        Raises InvalidArguments if they do not fit the handler or cannot be stored, and
        ImproperlyConfigured if the schedule's name is taken.
        """
        data = self._bind(args, kwargs)
        to_json(data, limit=conf.max_data_bytes)
        schedule = replace(self._schedule, data=data)
        if (declaration := registry.get(schedule.job_type)) is not None:
            weight = schedule.options.get("weight")
            check_weight(declaration.policy, weight, data)
        schedules.add(schedule)
        return schedule


def schedule_of(
    job_type: str, rule: object, options: Options, given: dict[str, Any]
) -> ScheduleDeclaration:
    """The schedule of this rule and these options of ``at()``, without data. Raises
    ImproperlyConfigured."""
    where = f"{job_type}.at()"
    if not isinstance(rule, Cron | Every):
        raise ImproperlyConfigured(
            f"{where} takes a rule, such as cron('30 2 * * *') or every(minutes=5), "
            f"not {rule!r}."
        )
    for name, value in given.items():
        if name not in _CHECKS:
            hint = did_you_mean(name, _CHECKS)
            if name in ("tz", "time_zone"):
                hint = " The rule has it: cron('30 2 * * *', tz=…)."
            elif name in Options.__dataclass_fields__:
                hint = f" Options of the jobs go before it: .using({name}=…).at(…)."
            raise ImproperlyConfigured(f"{where} has no option {name!r}.{hint}")
        if problem := _CHECKS[name](value):
            raise ImproperlyConfigured(f"{where}: {name} {problem}")
    if problem := options_problem(options):
        raise ImproperlyConfigured(f"{where}: {problem}")
    starts_at, ends_at = _period(given, where)
    return ScheduleDeclaration(
        name=given.get("name", job_type),
        job_type=job_type,
        rule=rule,
        time_zone=_time_zone(rule),
        options=as_stored(options),
        missed=_missed_policy(given, where),
        overlap=Overlap(given.get("overlap", Overlap.ALLOW)),
        jitter=_duration(given.get("jitter", 0)),
        starts_at=starts_at,
        ends_at=ends_at,
    )


def _time_zone(rule: ScheduleRule) -> str:
    return rule.time_zone if isinstance(rule, Cron) else default_time_zone()


def _duration(value: timedelta | float) -> timedelta:
    duration = to_duration(value)
    assert isinstance(duration, timedelta)
    return duration


def _missed_policy(given: dict[str, Any], where: str) -> MissedPolicy:
    most = given.get("missed_most", DEFAULT.most)
    if most > MOST_MISSED:
        raise ImproperlyConfigured(
            f"{where}: missed_most must be at most {MOST_MISSED:,}, not {most:,}."
        )
    return MissedPolicy(
        missed=Missed(given.get("missed", DEFAULT.missed)),
        within=_duration(given.get("missed_within", DEFAULT.within)),
        most=most,
    )


def _period(
    given: dict[str, Any], where: str
) -> tuple[datetime | None, datetime | None]:
    starts, ends = given.get("starts"), given.get("ends")
    if starts is not None and ends is not None and ends < starts:
        raise ImproperlyConfigured(
            f"{where}: ends must not be before starts: {starts} to {ends}."
        )
    return starts and starts.astimezone(UTC), ends and ends.astimezone(UTC)


def options_problem(options: Options) -> str | None:
    """Why the jobs of a schedule cannot have these options, as a sentence."""
    stated = as_stored(options)
    for name, reason in NOT_OF_SCHEDULES.items():
        if name in stated:
            return f"The jobs of a schedule cannot have {name}: {reason}."
    return None
