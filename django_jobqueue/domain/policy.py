"""The policy of a job type: the options of ``@job``, and checks of their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from django_jobqueue import retries
from django_jobqueue.conf import CENTURY, GREATEST, conf
from django_jobqueue.domain.retry_rules import ExceptionRule
from django_jobqueue.domain.states import Delivery
from django_jobqueue.retries import Backoff
from django_jobqueue.text.suggestions import did_you_mean

if TYPE_CHECKING:
    from django_jobqueue.domain.followers import Follower
    from django_jobqueue.domain.per_key import PerKey
    from django_jobqueue.domain.rates import Rate

NAME_LENGTH: Final = 100
PRIORITIES: Final = range(-100, 101)
NO_LIMIT: Final = -1  # as an override of max_attempts or concurrency
UNIQUE_UNTIL: Final = ("finished", "started", "forever")
ON_DUPLICATE: Final = ("raise", "return", "replace")
WHO_LENGTH: Final = 1_000  # characters of a name that is given; users' own are kept
# PostgreSQL has moments, infinity among them, that Python cannot read in every time
# zone; one such row would fail every claim that comes upon it.
READABLE: Final = (
    datetime(1, 1, 3, tzinfo=UTC),
    datetime(9999, 12, 30, tzinfo=UTC),
)
LONGEST: Final = timedelta(seconds=CENTURY)  # PostgreSQL can add it to any moment


class Unset(Enum):
    """The value of an option for which the setting decides."""

    UNSET = "the setting decides"


UNSET: Final = Unset.UNSET
Problem = Callable[[object], str | None]  # None is right; else why it is wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The options of a job type, as ``@job`` states them."""

    queue: str = "default"
    priority: int = 0  # greater is sooner
    max_attempts: int | None | Unset = UNSET  # None is unlimited
    backoff: Backoff = retries.exponential
    timeout: timedelta | None | Unset = UNSET  # None is unlimited
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    concurrency: int | None = None  # in the whole cluster; None is unlimited
    rate: Rate | None = None  # of starts, in the whole cluster; None is unlimited
    per_key: PerKey | None = None
    atomic: bool = False
    expires_in: timedelta | None = None
    max_crashes: int | Unset = UNSET
    retry: tuple[ExceptionRule, ...] = ()  # others are retried
    takes_context: bool = False
    sensitive: frozenset[str] = frozenset()
    indexed: tuple[str, ...] = ()  # keys of the data that have an index in the archive
    summary: str | None = None  # what lists say of each job: "order {order_id}"
    unique: bool | tuple[str, ...] = False  # True, or the parameters that count
    unique_until: str | timedelta | None = None  # None is UniqueRule's default
    on_duplicate: str | None = None  # likewise
    debounce: timedelta | None = None  # the wait, which each duplicate restarts
    debounce_max: timedelta | None = None  # of all these waits
    on_success: tuple[Follower, ...] | None = None
    on_failure: tuple[Follower, ...] | None = None
    on_complete: tuple[Follower, ...] | None = None
    capture: tuple[str, ...] | Unset = UNSET  # "language", "time_zone"
    middleware: tuple[str | Callable[..., Any], ...] = ()  # within the setting's

    @property
    def attempts_allowed(self) -> int | None:
        """The number of attempts; None is unlimited."""
        if self.delivery == Delivery.AT_MOST_ONCE:
            return 1
        if isinstance(self.max_attempts, Unset):
            return conf.max_attempts
        return self.max_attempts

    @property
    def time_allowed(self) -> timedelta | None:
        """How long an attempt may run; None is unlimited."""
        if not isinstance(self.timeout, Unset):
            return self.timeout
        return None if conf.timeout is None else timedelta(seconds=conf.timeout)

    @property
    def crashes_allowed(self) -> int:
        """The number of crashes after which a job is archived as failed."""
        if isinstance(self.max_crashes, Unset):
            return conf.max_crashes
        return self.max_crashes

    @property
    def captured(self) -> tuple[str, ...]:
        """The names of what an enqueue captures in the job's metadata."""
        if isinstance(self.capture, Unset):
            return conf.capture
        return self.capture


def limit_in_force(declared: int | None, override: int | None) -> int | None:
    """The limit in force; None is unlimited."""
    if override is None:
        return declared
    return None if override == NO_LIMIT else override


def time_in_force(
    own: timedelta | None, declared: timedelta | None, override: timedelta | None
) -> timedelta | None:
    """How long an attempt may run: the job's ``own`` limit, else its type's; None is
    unlimited."""
    if own is not None:
        return own
    return (declared if override is None else override) or None


def attempts_in_force(
    delivery: str, own: int | None, declared: int | None, override: int | None
) -> int | None:
    """How many attempts a job has: its ``own`` number, else its type's; None is
    unlimited."""
    if delivery == Delivery.AT_MOST_ONCE:
        return 1
    return limit_in_force(declared, override) if own is None else own


def attempts_left(allowed: int | None, attempt: int) -> int | None:
    """How many attempts there are from this one on, which counts; None is unlimited."""
    return None if allowed is None else max(0, allowed - attempt + 1)


def name_problem(name: object) -> str | None:
    """Why this is no name of a job type, in words that follow "name"."""
    if not isinstance(name, str) or not name:
        return f"must be a string, not {name!r}."
    if len(name) > NAME_LENGTH:
        return f"must have at most {NAME_LENGTH} characters; {name[:30]!r}… has more."
    if not name.isprintable() or any(c.isspace() for c in name):
        return f"must have no space and no control character: {name!r}."
    return None


def name_of(job_type: object) -> object:
    """The name of the job type of a handler or a task; anything else as it is."""
    name = getattr(getattr(job_type, "declaration", None), "name", None)
    return name or getattr(job_type, "module_path", job_type)


def queue_problem(value: object) -> str | None:
    """Why this is no name of a queue, in words that follow "queue"."""
    if not isinstance(value, str) or not value:
        return f"must be a name, not {value!r}."
    if len(value) > NAME_LENGTH:
        return f"must have at most {NAME_LENGTH} characters; {value[:20]!r}… has more."
    if "," in value or not value.isprintable() or any(c.isspace() for c in value):
        return f"must have no space, comma or control character: {value!r}."
    return None


def priority_problem(value: object) -> str | None:
    """Why this is no priority, in words that follow "priority"."""
    if isinstance(value, bool) or not isinstance(value, int) or value not in PRIORITIES:
        return (
            "must be a whole number from -100 to 100 (greater is sooner), "
            f"not {value!r}."
        )
    return None


def attempts_problem(value: object) -> str | None:
    """Why this is no number of attempts, in words that follow the option."""
    return whole(1)(value)


def whole(minimum: int) -> Problem:
    """A check for a whole number of at least ``minimum``."""

    def problem(value: object) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            return f"must be a whole number of at least {minimum}, not {value!r}."
        return None if value <= GREATEST else f"must be at most {GREATEST:,}."

    return problem


def duration_problem(value: object) -> str | None:
    """Why this is no duration, in words that follow the option."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return f"must be a timedelta or a number of seconds, not {value!r}."
    if not seconds > 0:
        return f"must be more than zero, not {value!r}."
    if seconds > LONGEST.total_seconds():
        return f"must be at most {LONGEST.days:,} days, not {value!r}."
    return None


def one_of(*allowed: str) -> Problem:
    """A check for one of these words."""

    def problem(value: object) -> str | None:
        if value in allowed:
            return None
        *words, last = map(repr, allowed)
        words_of = f"{', '.join(words)} or {last}"
        return f"must be {words_of}, not {value!r}.{did_you_mean(value, allowed)}"

    return problem


def to_duration(value: timedelta | float | None | Unset) -> timedelta | None | Unset:
    """The duration as a timedelta."""
    if value is None or isinstance(value, timedelta | Unset):
        return value
    return timedelta(seconds=value)
