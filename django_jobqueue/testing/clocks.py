"""A clock that stands still until the test moves it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction
from django.utils import timezone

from django_jobqueue.conf import conf
from django_jobqueue.domain import ids
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.testing import session_clock
from django_jobqueue.testing.savepoints import is_broken
from django_jobqueue.text import timezones

try:
    import time_machine
except ImportError:
    time_machine = None  # type: ignore[assignment]
try:
    import freezegun
except ImportError:
    freezegun = None  # type: ignore[assignment]

_CLOCK: Final = "_jobqueue_clock"  # on the connection


class _Movable(Protocol):
    """Python's own time, as time-machine or freezegun hold it."""

    def move_to(self, moment: datetime, /) -> Any: ...


class Clock:
    """The time of the database, and of Python if possible."""

    def __init__(
        self, db: DjangoDatabase, at: datetime, python: _Movable | None
    ) -> None:
        self._db = db
        self._now = at
        self._python = python

    @property
    def now(self) -> datetime:
        """The time now."""
        return self._now

    def move(self, by: timedelta | None = None, /, **units: float) -> datetime:
        """Move forward: ``move(hours=1)``, or by a timedelta; returns the new time.
        Raises TypeError for other types, such as a number."""
        if by is not None and not isinstance(by, timedelta):
            raise TypeError(
                f"move() takes a timedelta or units, not {by!r}. Write move(seconds=…)."
            )
        return self.move_to(self._now + (by or timedelta(**units)))

    def move_to(self, moment: datetime) -> datetime:
        """Move to this moment, which must have a time zone."""
        self._now = aware(moment)
        session_clock.move(self._db, self._now)
        if self._python is not None:
            self._python.move_to(self._now)
        return self._now


@contextmanager
def clock(at: datetime | None = None, *, python: bool | None = None) -> Iterator[Clock]:
    """Stop time, and move it only on request::

        with clock() as time:
            drain()
            time.move(hours=1)
            drain()

    It starts at ``at``, by default Python's time. This thread's connection to the jobs'
    database uses it in every statement that names time functions without a schema.
    Python's own clock follows if time-machine or freezegun is installed;
    ``python=True`` requires that, ``python=False`` forbids it.
    """
    db = DjangoDatabase()
    connection = connections[db.alias]
    if getattr(connection, _CLOCK, None) is not None:
        raise RuntimeError("A clock stands already: move it, with move() or move_to().")
    moment = datetime.now(UTC) if at is None else aware(at)
    with ExitStack() as stack:
        stack.callback(setattr, ids, "_last", 0)  # or new ids go on in its future
        held = Clock(db, moment, _hold_python(stack, moment, python))
        with transaction.atomic(using=db.alias, savepoint=False):
            path = session_clock.put(db, moment)
        setattr(connection, _CLOCK, held)
        try:
            yield held
        finally:
            setattr(connection, _CLOCK, None)
            if not is_broken(connection):  # or the end of its transaction undoes it
                session_clock.take_away(db, path)


def clock_that_stands() -> Clock | None:
    """The clock of this thread's connection, if there is one."""
    return getattr(connections[conf.database], _CLOCK, None)


def _hold_python(
    stack: ExitStack, moment: datetime, wanted: bool | None
) -> _Movable | None:
    if wanted is False:
        return None
    if time_machine is not None:
        return stack.enter_context(time_machine.travel(moment, tick=False))
    if freezegun is not None:
        return stack.enter_context(freezegun.freeze_time(moment))
    if wanted:
        raise ImproperlyConfigured(
            "Install time-machine or freezegun to move Python's clock as well."
        )
    return None


def aware(moment: datetime) -> datetime:
    """The same moment, in UTC. Raises TypeError for what is no moment, ValueError if it
    has no time zone where Django's times have one."""
    if not isinstance(moment, datetime):
        raise TypeError(f"{moment!r} is no moment: give a datetime.")
    if settings.USE_TZ and timezone.is_naive(moment):
        raise ValueError(f"{moment!r} is naive: give it a time zone.")
    return timezones.aware(moment).astimezone(UTC)
