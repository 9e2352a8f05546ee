"""Kinds of settings: what a value may be, and how it is read."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar, overload

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, router

from django_jobqueue.text import sanitizing, url_templates

T = TypeVar("T")
DAY = 86_400.0
CENTURY: Final = 36_500 * DAY
SIZE: Final = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)i?B?", re.IGNORECASE)
UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
PATHS: Final = ("DUMP_DIR", "HEARTBEAT_FILE", "PROJECT_ROOTS")  # of any bytes
CAPTURES: Final = ("language", "time_zone", "tenant")
LAST_PORT: Final = 65_535
SHORTEST_TOKEN: Final = 16  # characters
GREATEST: Final = 2_147_483_647  # of an integer column


class Source(Protocol):
    """An object with settings as attributes."""

    settings: ClassVar[dict[str, Setting[Any]]]

    def read(self, name: str) -> Any:
        """The value in force, as it was written."""
        ...


class Setting(Generic[T]):
    """One key of the ``JOBQUEUE`` dict; an attribute of ``conf`` reads it."""

    described_as: ClassVar[str]  # how a value is described to people
    types: ClassVar[tuple[type, ...]]
    maximum: float | None = None

    def __init__(
        self,
        default: T,
        help: str,
        *,
        minimum: float | None = None,
        maximum: float | None = None,
        optional: bool = False,  # None is a value, too
    ) -> None:
        self.default = default
        self.help = help
        self.minimum = minimum
        self.maximum = self.maximum if maximum is None else maximum
        self.optional = optional
        self.name = ""

    def __set_name__(self, owner: type[Source], name: str) -> None:
        self.name = name.upper()
        owner.settings[self.name] = self

    @overload
    def __get__(self, conf: None, owner: type[Source]) -> Setting[T]: ...
    @overload
    def __get__(self, conf: Source, owner: type[Source]) -> T: ...
    def __get__(self, conf: Source | None, owner: type[Source]) -> Setting[T] | T:
        if conf is None:
            return self
        given = conf.read(self.name)
        value = self.convert(given)
        if self.lasts(given):
            vars(conf)[self.name.lower()] = value  # where it is found from now on
        return value

    def lasts(self, given: Any) -> bool:
        """True if the value is the same until a setting changes."""
        return True

    def convert(self, value: Any) -> T:
        """The value as the engine uses it."""
        return value  # type: ignore[no-any-return]

    def over(self, given: Any, value: Any) -> Any:
        """The value that counts when this one wins over the given one."""
        return value

    @property
    def flag(self) -> str:
        """The flag of ``runworkers`` that overrides it."""
        return "--" + self.name.lower().replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable that overrides the ``JOBQUEUE`` dict."""
        return f"JOBQUEUE_{self.name}"

    def parse(self, text: str) -> Any:
        """The text of a flag or a variable as a value; itself if it is none."""
        if self.optional and text.lower() in ("none", ""):
            return None
        try:
            return self.from_text(text)
        except ValueError:
            return text

    def from_text(self, text: str) -> Any:
        """The text as a value of this kind. Raises ValueError."""
        return text

    def problem(self, value: object) -> str | None:
        """The problem of this value, in words that follow the setting's name."""
        if not self.allows_type(value):
            return f"must be {self.described_as}, not {value!r}"
        if self.name not in PATHS and not sanitizing.is_utf8(value):
            return f"must be in UTF-8, not {value!r}"
        return None if value is None else self.size_problem(value)

    def size_problem(self, value: Any) -> str | None:
        """The problem of this value's size, in the same words."""
        if self.minimum is not None and value < self.minimum:
            return f"must be at least {self.minimum:,}, not {value!r}"
        if self.maximum is not None and value > self.maximum:
            return f"must be at most {self.maximum:,.0f}, not {value!r}"
        return None

    def allows_type(self, value: object) -> bool:
        """True if the value is of this setting's kind, or None where that is one."""
        return (value is None and self.optional) or self.accepts(value)

    def accepts(self, value: object) -> bool:
        """True if the value is of this setting's kind."""
        return isinstance(value, self.types) and not isinstance(value, bool)


class Seconds(Setting[T]):
    described_as = "a number of seconds"
    types = (int, float)
    maximum = CENTURY

    def accepts(self, value: object) -> bool:
        return super().accepts(value) and value == value  # not NaN

    def from_text(self, text: str) -> float:
        return float(text)


class Count(Setting[T]):
    described_as = "a whole number"
    types = (int,)
    maximum = GREATEST

    def from_text(self, text: str) -> int:
        return int(text)


class Port(Count[int | None]):
    described_as = "a port, which is a whole number"

    def size_problem(self, value: int) -> str | None:
        if 0 <= value <= LAST_PORT:
            return None
        return f"must be from 0 to {LAST_PORT}, not {value!r}"


class Bytes(Count[T]):
    """A size; a flag or a variable may have a unit: ``512MB``."""

    described_as = "a whole number of bytes"
    maximum = 1 << 50

    def from_text(self, text: str) -> int:
        match = SIZE.fullmatch(text)
        if match is None:
            raise ValueError(text)
        number, unit = match.groups()
        if not unit:
            return int(number)
        return int(float(number) * UNITS[unit.upper()])


class Text(Setting[T]):
    described_as = "a string"
    types = (str,)

    def size_problem(self, value: str) -> str | None:
        if self.maximum is None or len(value) <= self.maximum:
            return None
        return f"must have at most {self.maximum} characters, not {len(value)}"


class UrlTemplate(Text[str | None]):
    """An address with fields in braces; None: there is none."""

    described_as = "an address with fields in braces"

    def __init__(self, help: str, *, fields: Collection[str], needs: str = "") -> None:
        super().__init__(None, help, maximum=2_000, optional=True)
        self.fields = fields
        self.needs = needs  # a field that must be there

    def problem(self, value: object) -> str | None:
        if isinstance(value, str) and (wrong := self._wrong(value)):
            return wrong
        return super().problem(value)

    def accepts(self, value: object) -> bool:
        return isinstance(value, str) and not self._wrong(value)

    def _wrong(self, value: str) -> str | None:
        return url_templates.problem(value, self.fields, self.needs)


class Pattern(Setting[re.Pattern[str]]):
    """A regular expression, compiled when it is read."""

    described_as = "a regular expression"
    types = (str,)

    def convert(self, value: Any) -> re.Pattern[str]:
        return re.compile(value)

    def accepts(self, value: object) -> bool:
        try:
            return bool(value) and isinstance(value, str) and bool(re.compile(value))
        except re.error:
            return False


class Alias(Text[str]):
    def convert(self, value: str | None) -> str:
        return value or _routed()

    def lasts(self, given: str | None) -> bool:
        return given is not None or not router.routers


class Choice(Setting[str]):
    choices: ClassVar[tuple[str, ...]]

    def accepts(self, value: object) -> bool:
        return value in self.choices


class Mode(Choice):
    described_as = "queue, immediate or on_commit"
    choices = ("queue", "immediate", "on_commit")


class LogFormat(Choice):
    described_as = "text or json"
    choices = ("text", "json")


class TraceRelation(Choice):
    described_as = "parent or link"
    choices = ("parent", "link")


class Flag(Setting[T]):
    described_as = "True or False"

    def accepts(self, value: object) -> bool:
        return isinstance(value, bool)

    def from_text(self, text: str) -> object:
        return {"true": True, "false": False}.get(text.lower(), text)


class Names(Setting[T]):
    described_as = "a list of strings"

    def accepts(self, value: object) -> bool:
        return isinstance(value, list | tuple) and all(
            isinstance(name, str) and name for name in value
        )

    def from_text(self, text: str) -> list[str]:
        return [name for name in text.split(",") if name]


class Tokens(Names[list[str]]):
    """Secrets, so that none is ever repeated."""

    described_as = f"a list of strings of at least {SHORTEST_TOKEN} characters"

    def problem(self, value: object) -> str | None:
        return None if self.accepts(value) else f"must be {self.described_as}"

    def accepts(self, value: object) -> bool:
        return super().accepts(value) and all(
            len(token) >= SHORTEST_TOKEN and token.isascii() and token.isprintable()
            for token in value  # type: ignore[attr-defined]
        )


class Networks(Names[tuple[IPv4Network | IPv6Network, ...]]):
    described_as = 'a list of networks, such as "10.0.0.0/8" and "::1"'

    def convert(self, value: Any) -> tuple[IPv4Network | IPv6Network, ...]:
        return tuple(map(ip_network, value))

    def accepts(self, value: object) -> bool:
        try:
            return super().accepts(value) and bool(self.convert(value) or True)
        except ValueError:  # also for an address of a host with the length of a network
            return False


class QueueLabels(Setting[dict[str, str]]):
    described_as = "a dict of labels by patterns of queues"

    def accepts(self, value: object) -> bool:
        return isinstance(value, dict) and all(
            isinstance(text, str) and text for pair in value.items() for text in pair
        )

    def from_text(self, text: str) -> dict[str, str]:
        """``tenant-*=tenant,bulk-*=bulk`` as a dict."""
        pairs = (pair.partition("=") for pair in text.split(",") if pair)
        return {pattern.strip(): label.strip() for pattern, _, label in pairs}


class Folders(Names[T]):
    described_as = "a list of absolute paths"

    def accepts(self, value: object) -> bool:
        return super().accepts(value) and all(map(os.path.isabs, value))  # type: ignore[call-overload]


class Captures(Names[tuple[str, ...]]):
    described_as = f"a list out of {', '.join(map(repr, CAPTURES))}"

    def convert(self, value: Any) -> tuple[str, ...]:
        return tuple(value)

    def accepts(self, value: object) -> bool:
        return super().accepts(value) and set(value) <= {*CAPTURES}  # type: ignore[call-overload]


class Retention(Setting[dict[str, T | None]]):
    described_as = (
        "a dict of seconds (or None, forever) by status: succeeded, failed, expired, "
        "cancelled"
    )

    def convert(self, value: Any) -> dict[str, T | None]:
        return {**self.default, **value}

    def over(self, given: Any, value: Any) -> Any:
        """Statuses that are not named keep theirs."""
        return value if given is None else {**given, **value}

    def accepts(self, value: object) -> bool:
        return isinstance(value, dict) and all(
            status in self.default and (seconds is None or self._is_allowed(seconds))
            for status, seconds in value.items()
        )

    def from_text(self, text: str) -> dict[str, T | None]:
        """``a=1,b=none`` as a dict."""
        pairs = (pair.partition("=") for pair in text.split(","))
        return {
            name.strip(): None if value.lower() == "none" else self._number(value)
            for name, _, value in pairs
        }

    @staticmethod
    def _number(text: str) -> Any:
        return float(text)

    @staticmethod
    def _is_allowed(seconds: object) -> bool:
        number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        return number and 0 <= seconds <= CENTURY  # type: ignore[operator]


class RetentionCount(Retention[int]):
    described_as = (
        "a dict of numbers from 1 on (or None, any number) by status: succeeded, "
        "failed, expired, cancelled"
    )

    @staticmethod
    def _number(text: str) -> int:
        return int(text)

    @staticmethod
    def _is_allowed(number: object) -> bool:
        return type(number) is int and 1 <= number <= GREATEST


def _routed() -> str:
    """Where the project's routers have jobs written to."""
    if not router.routers:
        return DEFAULT_DB_ALIAS
    alias: str = router.db_for_write(apps.get_model("jobqueue", "QueuedJob"))
    return alias
