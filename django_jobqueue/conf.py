"""Every setting: its name, default, kind and meaning, read from ``settings.JOBQUEUE``.

Times are seconds. ``manage.py runworkers`` has a flag of the same name for every
setting (``LEASE`` is ``--lease``); a flag wins over the setting, in that command and in
the worker processes that it starts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Generic, TypeVar, overload

from django.apps import apps
from django.conf import settings
from django.core.signals import setting_changed
from django.db import DEFAULT_DB_ALIAS, router

T = TypeVar("T")
DAY = 86_400.0
CENTURY: Final = 36_500 * DAY
CAPTURES: Final = ("language", "time_zone")
GREATEST: Final = 2_147_483_647  # of an integer column


class Setting(Generic[T]):
    """One key of the ``JOBQUEUE`` dict; an attribute of ``conf`` reads it."""

    kind: ClassVar[str]  # how a value is described to people
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

    def __set_name__(self, owner: type[Conf], name: str) -> None:
        self.name = name.upper()
        owner.settings[self.name] = self

    @overload
    def __get__(self, conf: None, owner: type[Conf]) -> Setting[T]: ...
    @overload
    def __get__(self, conf: Conf, owner: type[Conf]) -> T: ...
    def __get__(self, conf: Conf | None, owner: type[Conf]) -> Setting[T] | T:
        return self if conf is None else self.convert(conf.read(self.name))

    def convert(self, value: Any) -> T:
        """The value as the engine uses it."""
        return value  # type: ignore[no-any-return]

    @property
    def flag(self) -> str:
        """The flag of ``runworkers`` that overrides it."""
        return "--" + self.name.lower().replace("_", "-")

    def problem(self, value: object) -> str | None:
        """What is wrong with this value, in words that follow the setting's name."""
        if not self.is_of_kind(value):
            return f"must be {self.kind}, not {value!r}"
        return None if value is None else self.size_problem(value)

    def size_problem(self, value: Any) -> str | None:
        """What is wrong with the size of this value, in the same words."""
        if self.minimum is not None and value < self.minimum:
            return f"must be at least {self.minimum:g}, not {value!r}"
        if self.maximum is not None and value > self.maximum:
            return f"must be at most {self.maximum:,.0f}, not {value!r}"
        return None

    def is_of_kind(self, value: object) -> bool:
        """Whether the value is of this setting's kind, or None where that is one."""
        return (value is None and self.optional) or self.accepts(value)

    def accepts(self, value: object) -> bool:
        """Whether the value is of this setting's kind."""
        return isinstance(value, self.types) and not isinstance(value, bool)


class Seconds(Setting[T]):
    kind = "a number of seconds"
    types = (int, float)
    maximum = CENTURY

    def accepts(self, value: object) -> bool:
        return super().accepts(value) and value == value  # not NaN


class Count(Setting[T]):
    kind = "a whole number"
    types = (int,)
    maximum = GREATEST


class Text(Setting[T]):
    kind = "a string"
    types = (str,)

    def size_problem(self, value: str) -> str | None:
        if self.maximum is None or len(value) <= self.maximum:
            return None
        return f"must have at most {self.maximum} characters, not {len(value)}"


class Alias(Text[str]):
    def convert(self, value: str | None) -> str:
        return value or _routed()


class Mode(Setting[str]):
    kind = "queue, immediate or on_commit"

    def accepts(self, value: object) -> bool:
        return value in ("queue", "immediate", "on_commit")


class Flag(Setting[T]):
    kind = "True or False"

    def accepts(self, value: object) -> bool:
        return isinstance(value, bool)


class Names(Setting[T]):
    kind = "a list of strings"

    def accepts(self, value: object) -> bool:
        return isinstance(value, list | tuple) and all(
            isinstance(name, str) and name for name in value
        )


class Folders(Names[T]):
    kind = "a list of absolute paths"

    def accepts(self, value: object) -> bool:
        return super().accepts(value) and all(map(os.path.isabs, value))  # type: ignore[call-overload]


class Captures(Names[T]):
    kind = f"a list out of {', '.join(map(repr, CAPTURES))}"

    def accepts(self, value: object) -> bool:
        return super().accepts(value) and set(value) <= {*CAPTURES}  # type: ignore[call-overload]


class Retention(Setting[dict[str, float | None]]):
    kind = (
        "a dict of seconds (or None, for ever) by status: succeeded, failed, expired, "
        "cancelled"
    )

    def convert(self, value: Any) -> dict[str, float | None]:
        return {**self.default, **value}

    def accepts(self, value: object) -> bool:
        return isinstance(value, dict) and all(
            status in self.default and (kept is None or self._is_time(kept))
            for status, kept in value.items()
        )

    @staticmethod
    def _is_time(kept: object) -> bool:
        number = isinstance(kept, int | float) and not isinstance(kept, bool)
        return number and 0 <= kept <= CENTURY  # type: ignore[operator]


def _routed() -> str:
    """Where the project's routers have jobs written to."""
    if not router.routers:
        return DEFAULT_DB_ALIAS
    alias: str = router.db_for_write(apps.get_model("jobqueue", "QueuedJob"))
    return alias


class Override:
    """The end of a ``with`` block brings back the values that were overridden."""

    def __init__(self, conf: Conf, before: dict[str, Any]) -> None:
        self._conf = conf
        self._before = before

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None:
        self._conf._set(self._before)


class Conf:
    """The settings in force: flags first, then ``settings.JOBQUEUE``, then defaults.

    What is of another kind than its setting counts as not given, so that a project with
    a mistake starts and its system checks can tell.
    """

    settings: ClassVar[dict[str, Setting[Any]]] = {}

    database = Alias(
        None,  # type: ignore[arg-type]
        "Alias of the database that holds the jobs; None asks DATABASE_ROUTERS.",
        optional=True,
    )
    modules = Names[list[str]](
        ["jobs"], "Modules of each app in which handlers are looked for."
    )
    mode = Mode(
        "queue",
        "What an enqueue does: queue keeps the job for a worker; immediate runs it in "
        "the caller's process at once, on_commit when the transaction is committed. "
        "The latter two need no PostgreSQL; they are for tests and for development.",
    )
    queues = Names[list[str] | None](
        None, "Queues to claim from; None is every queue.", optional=True
    )
    processes = Count[int](1, "Worker processes of one runworkers.", minimum=1)
    threads = Count[int](
        4, "Threads for sync handlers in each worker process.", minimum=0
    )
    async_slots = Count[int](
        100, "Async handlers that a worker process runs at once.", minimum=0
    )
    embedded = Flag[bool](
        True,
        "Whether embedded.asgi() and embedded.wsgi() start a worker in processes that "
        "serve.",
    )
    lease = Seconds[float](
        15.0,
        "How long a worker's claims hold without renewal. A host that vanishes is "
        "taken over after this time; an outage of the database of 0.4 of it or less "
        "runs no job again.",
        minimum=2,
    )
    poll_interval = Seconds[float](
        5.0,
        "Longest rest between two looks for work; at most one second while LISTEN "
        "cannot be used.",
        minimum=0.05,
    )
    listen = Flag[bool | None](
        None,
        "Use LISTEN/NOTIFY; None tries it at start, and polls if nothing is heard.",
        optional=True,
    )
    grace = Seconds[float](
        30.0, "How long running jobs may go on after the first stop signal.", minimum=0
    )
    cancel_grace = Seconds[float](
        1.0, "How long a handler that was told to stop has to obey.", minimum=0
    )
    max_attempts = Count[int | None](
        5,
        "Attempts of job types that do not say; None is without end.",
        minimum=1,
        optional=True,
    )
    timeout = Seconds[float | None](
        3_600.0,
        "Timeout of job types that do not say; None is none.",
        minimum=0.01,
        optional=True,
    )
    max_crashes = Count[int](
        3, "A job whose worker died this often is archived as failed.", minimum=1
    )
    capture = Captures[list[str]](
        [],
        "What is active at an enqueue is so in the handler, too: the language, the "
        "time zone. It is kept in the job's metadata.",
    )
    middleware = Names[list[str]](
        [],
        "Dotted paths of what stands around every handler, the outermost first: "
        "factories of Django's own shape.",
    )
    max_data_bytes = Count[int](
        1_000_000, "Largest data of a job, in bytes of JSON text.", minimum=2
    )
    max_result_bytes = Count[int](
        65_536,
        "Largest result that is kept, in bytes of JSON text; of others the size.",
        minimum=64,
    )
    max_traceback_bytes = Count[int](
        65_536,
        "Longest traceback that is kept, in bytes; the middle of a longer one is cut.",
        minimum=256,
    )
    prefetch = Seconds[float](
        0.05,
        "How much work, in time, a worker process may claim ahead of its free slots; "
        "only of job types whose runs are short. 0 claims nothing ahead.",
        minimum=0,
    )
    retention = Retention(
        {
            "succeeded": 7 * DAY,
            "failed": 90 * DAY,
            "expired": 30 * DAY,
            "cancelled": 30 * DAY,
        },
        "How long archived jobs are kept, by status; None is for ever.",
    )
    prune_interval = Seconds[float](
        300.0, "Rest of the pruner between two passes over the archive.", minimum=1
    )
    release = Text[str](
        "",
        "Version of your project; recorded with attempts and workers.",
        maximum=100,
    )
    project_roots = Folders[list[str]](
        [],
        "Folders whose code counts as your own in failures; empty: every file outside "
        "the standard library and site-packages.",
    )
    dump_dir = Text[str](
        ".", "Folder for the JSON dump of unfinished jobs after a second stop signal."
    )
    statement_timeout = Seconds[float](
        10.0, "Bound on each database call of the worker's own machinery.", minimum=1
    )

    alert_wait = Seconds[float](
        300.0,
        "The overview points at job types whose oldest ready job has waited longer.",
        minimum=1,
    )
    alert_failed = Count[int](
        5,
        "The overview points at job types of which more than this share, in percent, "
        "failed in the last hour.",
        minimum=0,
        maximum=100,
    )

    admin_statement_timeout = Seconds[float](
        10.0,
        "Bound on each database call of a page of the admin; a page that needs longer "
        "says so.",
        minimum=0.1,
    )

    progress_max_age = Seconds[float | None](
        DAY,
        "How long a page may ask for the progress of a job that it shows; None is for "
        "ever.",
        minimum=1,
        optional=True,
    )

    def __init__(self) -> None:
        self._flags: dict[str, Any] = {}
        self._values: dict[str, Any] | None = None
        setting_changed.connect(self._changed)

    def override(self, flags: Mapping[str, Any]) -> Override:
        """Let these values win over the settings, in this process and its children: for
        good, or until the end of the block where a ``with`` statement calls it."""
        override = Override(self, self._flags)
        self._set({**self._flags, **flags})
        return override

    def _set(self, flags: dict[str, Any]) -> None:
        self._flags = flags
        self._values = None

    def read(self, name: str) -> Any:
        """The value in force, as it was written."""
        if self._values is None:
            self._values = {**self._configured(), **self._flags}
        return self._values.get(name, self.settings[name].default)

    def _configured(self) -> dict[str, Any]:
        given = getattr(settings, "JOBQUEUE", None)
        return {
            name: value
            for name, value in (given.items() if isinstance(given, dict) else ())
            if name in self.settings and self.settings[name].is_of_kind(value)
        }

    def _changed(self, *, setting: str, **kwargs: Any) -> None:
        if setting == "JOBQUEUE":
            self._values = None


conf = Conf()
