"""The rule of unique jobs: for how long a key is held, and what a duplicate does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from json import dumps
from typing import Any, Final, Self

FINISHED, STARTED, FOREVER = "finished", "started", "forever"
# What has no effect on a job that is not unique.
OPTIONS_OF_UNIQUE_JOBS: Final = (
    "unique_until",
    "on_duplicate",
    "debounce",
    "debounce_max",
)


@dataclass(frozen=True, kw_only=True)
class UniqueRule:
    """By what jobs are unique, for how long, and what a duplicate does.

    The database computes the keys (``jobqueue_unique_key``), so that an enqueue, a
    follower and plain SQL agree. None is an option that nobody gave.
    """

    by: tuple[str, ...] | None = None  # parameters that count; None is all data
    defaults: Mapping[str, Any] = field(default_factory=dict)  # of those left out
    unique_until: str | timedelta | None = None
    on_duplicate: str | None = None
    debounce: timedelta | None = None
    debounce_max: timedelta | None = None

    @cached_property
    def until(self) -> str | timedelta:
        """``finished``, ``started``, ``forever``, or how long from the enqueue."""
        if self.unique_until is not None:
            return self.unique_until
        return STARTED if self.replaces else FINISHED

    @cached_property
    def replaces(self) -> bool:
        """True if a duplicate replaces the data of the waiting job."""
        return self.debounce is not None or self.on_duplicate == "replace"

    @cached_property
    def raises(self) -> bool:
        """True if a duplicate that replaces nothing is an error."""
        return self.on_duplicate != "return"

    @cached_property
    def is_window(self) -> bool:
        """True if the key is held from the enqueue on, whatever becomes of the job."""
        return self.until not in (FINISHED, STARTED)

    @cached_property
    def window(self) -> timedelta | None:
        """How long the key is held from the enqueue on; None is forever."""
        return self.until if isinstance(self.until, timedelta) else None

    def problem(self) -> str | None:
        """Why these options contradict each other, as a sentence."""
        if self.debounce is None:
            if self.debounce_max is not None:
                return "debounce_max limits debounce, which is not given."
        elif self.debounce_max is not None and self.debounce_max < self.debounce:
            return "debounce_max must be at least as long as debounce."
        elif self.on_duplicate not in (None, "replace"):
            return (
                "with debounce a duplicate replaces the data, so on_duplicate cannot "
                f"be {self.on_duplicate!r}."
            )
        if self.replaces and self.until != STARTED:
            given = "debounce" if self.debounce else "on_duplicate='replace'"
            return (
                f"{given} replaces the data of a job that waits to start, so "
                f"unique_until can only be 'started', not {self.until!r}."
            )
        return None

    @cached_property
    def json(self) -> str:
        """As the row of the job type has it; durations are seconds. A default that is
        no JSON, which no call can have, counts as its class."""
        waits = {"debounce": self.debounce, "debounce_max": self.debounce_max}
        return dumps(
            {
                "by": self.by,
                "defaults": dict(self.defaults),
                "until": _seconds(self.until),
                "on_duplicate": self.on_duplicate or "raise",
                **{name: _seconds(wait) for name, wait in waits.items() if wait},
            },
            default=_class_of,
        )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read the rule that ``json`` wrote. The defaults are as if nobody gave them,
        so that the options of one job can replace them."""
        by, until, on_duplicate = value["by"], value["until"], value["on_duplicate"]
        return cls(
            by=None if by is None else tuple(by),
            defaults=value["defaults"],
            unique_until=None if until == FINISHED else _duration(until),
            on_duplicate=None if on_duplicate == "raise" else on_duplicate,
            debounce=_duration(value.get("debounce")),
            debounce_max=_duration(value.get("debounce_max")),
        )


def _seconds(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value


def _duration(value: Any) -> Any:
    return timedelta(seconds=value) if isinstance(value, int | float) else value


def _class_of(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
