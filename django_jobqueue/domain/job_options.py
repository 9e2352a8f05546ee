"""The table of options of a job: check, normal form, who states it, its column, and
how operators override it.

``@job``, ``using()``, ``enqueue()`` by name, the backend for Django's tasks, the rows
of job types, ``operations.override``, the admin and ``jobqueue override`` read it.
Type checkers need the names again, in ``enqueueing/options.py`` and
``backends/job_task.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple, TypedDict

from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from django_jobqueue import retries
from django_jobqueue.conf import GREATEST
from django_jobqueue.domain import option_checks as checks
from django_jobqueue.domain.databases import alias_problem
from django_jobqueue.domain.followers import followers_problem, to_followers
from django_jobqueue.domain.per_key import limit_key_problem, per_key_problem
from django_jobqueue.domain.policy import (
    LONGEST,
    NO_LIMIT,
    ON_DUPLICATE,
    PRIORITIES,
    UNSET,
    Policy,
    Problem,
    attempts_problem,
    duration_problem,
    one_of,
    priority_problem,
    queue_problem,
    to_duration,
    whole,
)
from django_jobqueue.domain.rates import (
    EXAMPLES,
    NO_RATE,
    rate_override,
    rate_override_problem,
    rate_problem,
)
from django_jobqueue.domain.states import Delivery
from django_jobqueue.domain.unique_rule import UniqueRule
from django_jobqueue.text.foreign_words import option_hint


class TypeOverrides(TypedDict, total=False):
    """The options that operators may override. None lets the code decide again."""

    priority: int | None
    max_attempts: int | None
    timeout: timedelta | None
    concurrency: int | None
    rate: str | None
    summary: str | None
    keep_succeeded: timedelta | None
    keep_unsuccessful: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """The values that an operator may give instead of the code's: whole numbers,
    durations or texts. The column is ``<option>_override``, and null lets the code
    decide."""

    help: str  # of the flag of ``jobqueue override``
    least: int | timedelta | None = None  # None: texts
    most: int | timedelta | None = None
    text_problem: Problem = checks.always_right
    normal: Callable[[Any], Any] = checks.unchanged  # makes the value to store
    unlimited: int | timedelta | str | None = None  # the value that lifts the limit
    words: Mapping[Any, Any] = field(default_factory=dict)  # the admin's, for values

    @property
    def is_duration(self) -> bool:
        """True if the values are durations."""
        return isinstance(self.least, timedelta)

    @property
    def is_text(self) -> bool:
        """True if the values are texts."""
        return self.least is None

    @property
    def sql_type(self) -> str:
        """The type of its column."""
        if self.is_text:
            return "text"
        return "interval" if self.is_duration else "integer"

    def problem(self, value: object) -> str | None:
        """Why an operator cannot give this value, in words that follow the name."""
        if value is None:
            return None
        if self.least is None or self.most is None:
            return self.text_problem(value)
        has_type = isinstance(value, type(self.least)) and not isinstance(value, bool)
        if has_type and (
            value == self.unlimited or self.least <= value <= self.most  # type: ignore[operator]
        ):
            return None
        if isinstance(self.most, timedelta):
            limits = f"timedelta from 0 to {self.most.days:,} days"
        else:
            limits = f"whole number from {self.least} to {self.most:,}"
            if self.unlimited is not None:
                limits += f", or {self.unlimited} for unlimited"
        return f"must be a {limits}, not {value!r}."


class Column(NamedTuple):
    """The column of a job type's row that holds an option. It has the option's name."""

    sql_type: str
    value: Callable[[Policy], Any] | None = None  # by default the policy's attribute


class Option(NamedTuple):
    """One option, of a job type or of one job, or only of operators."""

    problem: Problem = checks.always_right  # of a value, in words that follow the name
    normal: Callable[[Any], Any] = checks.unchanged  # makes the value to store
    of_type: bool = False  # @job takes it
    of_job: bool = False  # using() takes it, and None, which leaves it to the type
    type_takes: tuple[object, ...] = ()  # values of @job that need no check
    job_problem: Problem = checks.always_right  # of a value that @job takes
    column: Column | None = None
    override: Override | None = None

    def problem_for_type(self, value: object) -> str | None:
        """Why ``@job`` cannot have this value, in words that follow the name."""
        if any(value is taken for taken in self.type_takes):
            return None
        return self.problem(value)

    def problem_for_job(self, value: object) -> str | None:
        """Why ``using()`` cannot have this value, in words that follow the name."""
        return None if value is None else self.problem(value) or self.job_problem(value)


_of_type: Final = partial(Option, of_type=True)
_of_job: Final = partial(Option, of_job=True)
_of_both: Final = partial(Option, of_type=True, of_job=True)
_followers: Final = partial(
    _of_both, problem=followers_problem, normal=to_followers, type_takes=(None,)
)
_duration: Final = partial(Override, least=timedelta(0), most=LONGEST)
_UNLIMITED: Final = _("unlimited")

OPTIONS: Final[Mapping[str, Option]] = {
    # Of one job.
    "run_after": _of_job(problem=checks.run_after_problem, normal=checks.to_due),
    "expires_at": _of_job(problem=checks.expires_at_problem, normal=checks.to_moment),
    "metadata": _of_job(problem=checks.metadata_problem, normal=checks.to_dict),
    "tags": _of_job(problem=checks.tags_problem, normal=checks.to_tags),
    "unique_key": _of_job(problem=checks.text_problem),
    "limit_key": _of_job(problem=limit_key_problem),
    "weight": _of_job(problem=whole(1)),
    "id": _of_job(normal=checks.to_id),
    "enqueued_by": _of_job(problem=checks.who_problem),
    "using": _of_job(problem=alias_problem),
    # Of a job type, and of one job instead.
    "queue": _of_both(problem=queue_problem, column=Column(sql_type="text")),
    "priority": _of_both(
        problem=priority_problem,
        column=Column(sql_type="smallint"),
        override=Override(
            least=PRIORITIES[0],
            most=PRIORITIES[-1],
            help="From -100 to 100, greater is sooner; for jobs enqueued from now on.",
        ),
    ),
    "max_attempts": _of_both(
        problem=attempts_problem,
        type_takes=(UNSET, None),
        column=Column(sql_type="integer", value=lambda p: p.attempts_allowed),
        override=Override(
            least=1,
            most=GREATEST,
            unlimited=NO_LIMIT,
            words={NO_LIMIT: _UNLIMITED},
            help="Attempts of a job, the first one included.",
        ),
    ),
    "expires_in": _of_both(
        problem=duration_problem,
        normal=to_duration,
        type_takes=(None,),
        column=Column(sql_type="interval"),
    ),
    # Their columns are made from all three: store/job_types.py.
    "on_success": _followers(),
    "on_failure": _followers(),
    "on_complete": _followers(),
    "unique_until": _of_both(
        problem=checks.unique_until_problem, normal=checks.to_unique_until
    ),
    "on_duplicate": _of_both(problem=one_of(*ON_DUPLICATE)),
    "debounce": _of_both(
        problem=duration_problem, normal=to_duration, type_takes=(None,)
    ),
    "debounce_max": _of_both(
        problem=duration_problem, normal=to_duration, type_takes=(None,)
    ),
    "backoff": _of_both(
        problem=checks.backoff_problem,
        normal=checks.to_backoff,
        job_problem=checks.stored_backoff_problem,
        column=Column(
            sql_type="text", value=lambda p: retries.describe(p.backoff)[:200]
        ),
    ),
    "timeout": _of_both(
        problem=duration_problem,
        normal=to_duration,
        type_takes=(UNSET, None),
        column=Column(sql_type="interval", value=lambda p: p.time_allowed),
        override=_duration(
            unlimited=timedelta(0),
            words={timedelta(0): _UNLIMITED},
            help="How long one attempt may run.",
        ),
    ),
    # Of a job type.
    "delivery": _of_type(
        problem=checks.delivery_problem,
        normal=Delivery,
        column=Column(sql_type="text"),
    ),
    "concurrency": _of_type(
        problem=whole(0),
        type_takes=(None,),
        column=Column(sql_type="integer"),
        override=Override(
            least=0,
            most=GREATEST,
            unlimited=NO_LIMIT,
            words={NO_LIMIT: _UNLIMITED, 0: _("0 (paused)")},
            help="How many run at once in the whole cluster; 0 pauses.",
        ),
    ),
    "rate": _of_type(
        problem=rate_problem,
        type_takes=(None,),
        column=Column(
            sql_type="text", value=lambda p: None if p.rate is None else p.rate.text
        ),
        override=Override(
            text_problem=rate_override_problem,
            normal=rate_override,
            unlimited=NO_RATE,
            words={NO_RATE: _UNLIMITED},
            help=f"How many start in any window, such as {EXAMPLES}.",
        ),
    ),
    # Its columns are made from it: store/job_types.py.
    "per_key": _of_type(problem=per_key_problem, type_takes=(None,)),
    "atomic": _of_type(
        problem=checks.switch_problem, column=Column(sql_type="boolean")
    ),
    "max_crashes": _of_type(
        problem=whole(1),
        type_takes=(UNSET,),
        column=Column(sql_type="integer", value=lambda p: p.crashes_allowed),
    ),
    "retry": _of_type(
        problem=checks.retry_problem,
        normal=checks.to_retry,
        column=Column(
            sql_type="jsonb", value=lambda p: [rule.column for rule in p.retry]
        ),
    ),
    "takes_context": _of_type(problem=checks.switch_problem),
    "sensitive": _of_type(
        problem=checks.names_problem,
        normal=frozenset,
        column=Column(sql_type="jsonb", value=lambda p: sorted(p.sensitive)),
    ),
    "indexed": _of_type(
        problem=checks.paths_problem,
        normal=checks.to_tuple_of_names,
        column=Column(sql_type="jsonb", value=lambda p: list(p.indexed)),
    ),
    "summary": _of_type(
        problem=checks.summary_problem,
        type_takes=(None,),
        column=Column(sql_type="text"),
        override=Override(
            text_problem=checks.summary_problem,
            help="What lists say of each job, such as 'order {order_id}'.",
        ),
    ),
    # Its columns are made from it and the options about duplicates:
    # store/job_types.py.
    "unique": _of_type(problem=checks.unique_problem, normal=checks.to_unique),
    "capture": _of_type(
        problem=checks.capture_problem, normal=checks.to_capture, type_takes=(UNSET,)
    ),
    "middleware": _of_type(problem=checks.middleware_problem, normal=tuple),
    # Of operators alone; without them the setting RETENTION holds.
    "keep_succeeded": Option(
        override=_duration(help="How long succeeded jobs are kept in the archive.")
    ),
    "keep_unsuccessful": Option(
        override=_duration(help="How long other jobs are kept in the archive.")
    ),
}
OF_TYPE: Final = {name: option for name, option in OPTIONS.items() if option.of_type}
OF_JOB: Final = {name: option for name, option in OPTIONS.items() if option.of_job}
COLUMNS: Final = {name: one.column for name, one in OPTIONS.items() if one.column}
OVERRIDES: Final = {name: one.override for name, one in OPTIONS.items() if one.override}


def policy_of(where: str, options: dict[str, Any]) -> Policy:
    """The policy that these options of ``@job`` state; ``where`` names the function.

    Raises ImproperlyConfigured, with a sentence that says which option and why.
    """
    values = {name: checks.reusable(value) for name, value in options.items()}
    for name, value in values.items():
        if name not in OF_TYPE:
            handler = where.rpartition(".")[2]
            hint = _hint_of_one_job(name, handler)
            hint = hint or option_hint(name, OF_TYPE, handler)
            raise ImproperlyConfigured(
                f"@job on {where}: there is no option {name!r}.{hint}"
            )
        if problem := OF_TYPE[name].problem_for_type(value):
            raise ImproperlyConfigured(f"@job on {where}: {name} {problem}")
    policy = Policy(
        **{name: OF_TYPE[name].normal(value) for name, value in values.items()}
    )
    if problem := _contradiction(policy):
        raise ImproperlyConfigured(f"@job on {where}: {problem}")
    return policy


def _contradiction(policy: Policy) -> str | None:
    if policy.delivery == Delivery.AT_MOST_ONCE:
        if policy.max_attempts not in (UNSET, 1):
            return (
                "delivery='at_most_once' allows one attempt, so max_attempts must be 1."
            )
        if any(rule.is_retried for rule in policy.retry):
            return "delivery='at_most_once' never retries, so retry has no effect."
    allowed = policy.max_attempts
    for rule in policy.retry:
        own = rule.max_attempts
        if own and isinstance(allowed, int) and own > allowed:
            return (
                f"retry of {rule.name} has max_attempts={own}, and jobs of this type "
                f"have {allowed}; a rule can only lower that."
            )
    return UniqueRule(
        unique_until=policy.unique_until,
        on_duplicate=policy.on_duplicate,
        debounce=policy.debounce,
        debounce_max=policy.debounce_max,
    ).problem()


def option_of_types(name: str) -> str:
    """Where to state an option that one job cannot have and a job type can, as a
    sentence; empty for other names."""
    if name not in OF_TYPE:
        return ""
    return f" It holds for all jobs of a type: @job({name}=…)."


def _hint_of_one_job(name: str, handler: str) -> str:
    if name not in OF_JOB:
        return ""
    return f" It belongs to one job: {handler}.using({name}=…).enqueue(…)."
