"""Limits by key: how many jobs of one customer, account or tenant run at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

from django_jobqueue.domain.policy import name_problem, whole
from django_jobqueue.domain.rates import Rate, rate_problem
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.text.redaction import MASK, is_secret

LONGEST_KEY: Final = 150  # characters; the database shortens longer ones of plain SQL
MOST_SHARE: Final = 1_000  # jobs of a key in each round
LIMIT_KEY_LENGTH: Final = 260  # characters of "<limit> <key>"


@dataclass(frozen=True)
class PerKey:
    """A limit per key, where arguments of the job make the key::

        @job(per_key=PerKey("customer_id", concurrency=1))

    Without a limit the keys only take turns. Job types that give the same ``name``
    share the limit.

    :param by: the parameter whose value is the key; or several.
    :param concurrency: how many jobs of one key run at once across the cluster; None is
        unlimited.
    :param rate: how many jobs of one key start in any window of time; None is
        unlimited.
    :param name: of the limit, by default that of the job type.
    :param strict: whether the others of its key wait until a job that waits for a retry
        has ended. Needs ``concurrency=1``.
    """

    by: str | Iterable[str]
    _: KW_ONLY
    concurrency: int | None = None
    rate: Rate | None = None
    name: str | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.by, str) and isinstance(self.by, Iterable):
            object.__setattr__(self, "by", tuple(self.by))

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters that make the key."""
        return (self.by,) if isinstance(self.by, str) else tuple(self.by)

    def problem(self) -> str | None:
        """Why these values are wrong, in words that follow "per_key"."""
        by = self.by if isinstance(self.by, tuple) else (self.by,)
        if not all(isinstance(name, str) and name for name in by):
            return f"must name parameters, such as 'customer_id', not {self.by!r}."
        if not by and self.name is None:
            return (
                "names no parameter, so all jobs have one key: give it a name, under "
                "which several job types share the limit, or write @job(concurrency=…)."
            )
        if self.concurrency is not None and (wrong := whole(1)(self.concurrency)):
            return f"concurrency {wrong}"
        if not isinstance(self.strict, bool):
            return f"strict must be True or False, not {self.strict!r}."
        if self.strict and self.concurrency != 1:
            return (
                "strict=True keeps the order of each key, so one job of it runs at a "
                "time: add concurrency=1."
            )
        if self.rate is not None and (wrong := rate_problem(self.rate)):
            return f"rate {wrong}"
        if self.name is not None and (wrong := name_problem(self.name)):
            return f"name {wrong}"
        return None


def limit_name_of(key: str) -> str:
    """The name of the limit that a ``limit_key`` counts against; names have no
    space."""
    return key.partition(" ")[0]


def hidden_key(key: str) -> str:
    """A ``limit_key`` as it is shown to who may not see it: the limit."""
    return f"{limit_name_of(key)} {MASK}"


def is_of_secrets(rule: Any, sensitive: Iterable[Any] | None) -> bool:
    """True if keys by this rule of a job type have an argument that is masked."""
    names = [str(name).lower() for name in sensitive or ()]
    by = rule.get("by", ()) if isinstance(rule, dict) else ()
    return any(is_secret(str(name), names) for name in by)


def per_key_problem(value: object) -> str | None:
    """Why this is no limit by key, in words that follow the option."""
    if not isinstance(value, PerKey):
        return f"must be a PerKey, such as PerKey('customer_id'), not {value!r}."
    return value.problem()


def limit_key_problem(value: object) -> str | None:
    """Why this is no key, in words that follow the option."""
    if not isinstance(value, str):
        return f"must be a text, not {value!r}."
    if len(value) > LONGEST_KEY:
        return f"must have at most {LONGEST_KEY} characters; {value[:20]!r}… has more."
    if "\0" in value:
        return "must have no null character."
    return None


def share_problem(value: object) -> str | None:
    """Why this is no share of a key, in words that follow "share"."""
    if problem := whole(1)(value):
        return problem
    return None if value <= MOST_SHARE else f"must be at most {MOST_SHARE:,}."  # type: ignore[operator]


def check_key(per_key: PerKey, data: Mapping[str, Any]) -> None:
    """Raises InvalidArguments for arguments that cannot make a key."""
    size = 0
    for name in per_key.parameters:
        value = data.get(name)
        if value is not None and not isinstance(value, str | int):
            raise InvalidArguments(
                f"{name} is the key of a limit, so it must be a text, a whole number, "
                f"a bool or None, not {value!r}."
            )
        text = str(value)
        if len(per_key.parameters) > 1:  # the database escapes both of these
            size += text.count(",") + text.count("\\")
        size += len(text) + 1
    if size > LONGEST_KEY + 1:
        raise InvalidArguments(
            f"The key of a limit has at most {LONGEST_KEY} characters; "
            f"{', '.join(per_key.parameters)} would make it longer. Give "
            "using(limit_key=…) instead."
        )
