"""Retry rules: the option ``retry`` of ``@job``, by the class of the exception."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django_jobqueue import retries
from django_jobqueue.retries import Backoff, Wait
from django_jobqueue.text.suggestions import no_argument

_ARGUMENTS: Final = ("max_attempts", "backoff")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRule:
    """How to retry attempts that end with an exception of one class; None leaves a
    value to the job and its type.

    :param max_attempts: the number of the last attempt, whatever the earlier ones
        raised. It cannot raise the job's maximum.
    :param backoff: as for ``@job``: a name, a wait (a timedelta, or seconds), or a
        function.

    Raises TypeError for another argument; ``@job`` checks the values.
    """

    max_attempts: int | None = None
    backoff: str | Wait | Backoff | None = None

    if not TYPE_CHECKING:  # type checkers have the signature of __init__

        def __new__(cls, **arguments: Any) -> RetryRule:
            for name in arguments:
                if name not in _ARGUMENTS:
                    raise TypeError(no_argument("RetryRule", name, _ARGUMENTS))
            return object.__new__(cls)


RetryOption = Mapping[
    type[BaseException] | tuple[type[BaseException], ...],
    bool | str | timedelta | Backoff | RetryRule,
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExceptionRule:
    """The checked rule of one exception class."""

    exception: type[BaseException]
    is_retried: bool = True
    max_attempts: int | None = None
    backoff: Backoff | None = None

    @property
    def name(self) -> str:
        """The path of the class, for people."""
        return path_of(self.exception)

    @property
    def column(self) -> dict[str, Any]:
        """The rule as the row of the job type has it."""
        described = None if self.backoff is None else retries.describe(self.backoff)
        return {
            "exception": self.name,
            "retry": self.is_retried,
            "max_attempts": self.max_attempts,
            "backoff": described,
        }


def rule_for(
    error: BaseException, rules: Sequence[ExceptionRule]
) -> ExceptionRule | None:
    """The rule of the exception's class, else of its nearest base class, as in an
    ``except``; None if there is none."""
    if not rules:
        return None
    by_class = {rule.exception: rule for rule in rules}
    return next((by_class[c] for c in type(error).__mro__ if c in by_class), None)


def path_of(exception: type[BaseException]) -> str:
    """The path of the class, without the module of Python's own."""
    path = f"{exception.__module__}.{exception.__qualname__}"
    return path.removeprefix("builtins.")
