"""The rules of schedules, and the moments at which they fire.

A cron rule of a *fixed time* (no ``*`` at the start of its minute or hour) fires once
for each time on the wall clock: a time that the clock skips fires at the first instant
after the gap, several of one gap fire once together, and a time that the clock repeats
fires at its first passage only. Any *other* cron rule follows elapsed time: it fires at
every instant whose wall clock matches, in both passages of a repeated hour, and makes
up for nothing in a skipped one. That is the rule of Debian's cron, for gaps of any
length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cronsim import CronSim, CronSimError
from django.conf import settings

from django_jobqueue.domain.policy import LONGEST, READABLE
from django_jobqueue.text.suggestions import did_you_mean

SECOND: Final = timedelta(seconds=1)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS_OF: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
EVERY: Final = re.compile(
    r"every\s+(?=\S)(\d+(?:\.\d+)?)?\s*(s|seconds?|m|min|minutes?|h|hours?|d|days?)?"
    r"(?:\s+since\s+(-?\d+(?:\.\d+)?))?",
    re.IGNORECASE,
)
YEARS: Final = range(1_900, 2_200)  # after "since" nobody means them as seconds
NICKNAMES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


class Cron(NamedTuple):
    """Fires when a wall clock matches a cron expression."""

    expression: str  # of five fields, or of six of which the first is seconds
    time_zone: str

    @property
    def text(self) -> str:
        """As it stands in the row of its schedule."""
        return f"cron {self.expression}"

    def next_after(self, moment: datetime) -> datetime | None:
        """The first firing after this moment, in UTC; None if there is none."""
        if moment >= READABLE[1]:
            return None
        after = max(moment, READABLE[0]).astimezone(UTC)
        fires_at = _next_after(self.expression, ZoneInfo(self.time_zone), after)
        return None if fires_at is None or fires_at > READABLE[1] else fires_at


class Every(NamedTuple):
    """Fires at equal distances, counted in UTC from a moment: a restart or a change of
    clocks does not move them."""

    interval: timedelta
    since: datetime = EPOCH

    @property
    def text(self) -> str:
        """As it stands in the row of its schedule."""
        text = f"every {self.interval // SECOND}"
        if self.since != EPOCH:
            text += f" since {self.since.timestamp():.0f}"
        return text

    def next_after(self, moment: datetime) -> datetime | None:
        """The first firing after this moment, in UTC; None if there is none."""
        if moment < self.since:
            return self.since
        past = ((moment - self.since) // self.interval + 1) * self.interval
        return None if past > READABLE[1] - self.since else self.since + past


ScheduleRule = Cron | Every


def default_time_zone() -> str:
    """The time zone of a schedule that does not state one."""
    return settings.TIME_ZONE or "UTC"


def known_time_zone(name: str) -> str:
    """The same name, if it is that of a time zone. Raises ValueError."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = did_you_mean(name, available_timezones())
        raise ValueError(f"there is no time zone {name!r}.{hint}") from None
    return name


def cron(expression: str, *, tz: str | ZoneInfo | None = None) -> Cron:
    """A rule that fires when the wall clock of this time zone matches.

    :param expression: minute, hour, day of month, month and day of week, as in a
        crontab; or six fields, with seconds first; or ``@daily`` and the like.
    :param tz: the time zone, or its name; by default ``TIME_ZONE`` of the settings.

    Raises ValueError with a sentence for whoever wrote it.
    """
    if not isinstance(expression, str):
        raise ValueError(f"cron() takes a text like '30 2 * * *', not {expression!r}")
    tz = default_time_zone() if tz is None else str(tz)
    normal = NICKNAMES.get(expression.strip().lower(), " ".join(expression.split()))
    try:
        first = next(CronSim(normal, datetime(2000, 1, 1)), None)
    except CronSimError as error:
        raise ValueError(_complaint(expression, str(error))) from None
    if first is None:
        raise ValueError(f"cron({expression!r}) never fires")
    return Cron(normal.upper(), known_time_zone(tz))


def every(
    *,
    seconds: float = 0,
    minutes: float = 0,
    hours: float = 0,
    days: float = 0,
    since: datetime | None = None,
) -> Every:
    """A rule that fires at equal intervals of whole seconds.

    Raises ValueError with a sentence for whoever wrote it.
    """
    if since is not None and not isinstance(since, datetime):
        raise ValueError(f"since= takes a datetime with its time zone, not {since!r}")
    interval = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    if interval < SECOND or interval.microseconds:
        raise ValueError(f"every() takes whole seconds, at least one, not {interval}")
    if interval > LONGEST:
        raise ValueError(f"every() takes at most {LONGEST.days:,} days")
    if since is None:
        return Every(interval)
    if since.tzinfo is None:
        raise ValueError("since= takes a time with its time zone")
    if not READABLE[0] <= since <= READABLE[1]:
        first, last = (moment.date() for moment in READABLE)
        raise ValueError(f"since= takes a time from {first} to {last}")
    return Every(interval, since.astimezone(UTC).replace(microsecond=0))


def parse(text: str, time_zone: str) -> ScheduleRule:
    """The rule of this text, of a schedule's row or as an operator writes it: ``every 5
    minutes``, ``30 2 * * *``, ``@daily``. Raises ValueError."""
    text = text.strip()
    if text.lower().startswith("every "):
        return _parse_every(text)
    return cron(text.removeprefix("cron "), tz=time_zone)


def _parse_every(text: str) -> Every:
    match = EVERY.fullmatch(text)
    if match is None:
        raise ValueError(
            f"cannot read the rule {text!r}: write for example every 5 minutes"
        )
    number, unit, since = match.groups()
    seconds = float(number or 1) * SECONDS_OF[(unit or "s")[0].lower()]
    try:
        if since and float(since) in YEARS:
            raise ValueError("since takes the seconds from 1970 on, not a year")
        began = datetime.fromtimestamp(float(since), UTC) if since else None
        return every(seconds=seconds, since=began)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"cannot read the rule {text!r}: {error}") from None


def firings(
    rule: ScheduleRule, after: datetime, until: datetime | None = None
) -> Iterator[datetime]:
    """The moments after one, in UTC, until there are no more or this is over."""
    moment = rule.next_after(after)
    while moment is not None and (until is None or moment <= until):
        yield moment
        moment = rule.next_after(moment)


def next_firings(rule: ScheduleRule, after: datetime, number: int) -> list[datetime]:
    """The next so many moments, in UTC."""
    return list(islice(firings(rule, after), number))


FIELDS: Final = {
    "second": "a number from 0 to 59",
    "minute": "a number from 0 to 59",
    "hour": "a number from 0 to 23",
    "day-of-month": "a number from 1 to 31 that a month of the rule has, or L",
    "month": "a number from 1 to 12, or JAN to DEC",
    "day-of-week": "a number from 0 to 7 (0 and 7 are Sunday), or SUN to SAT",
}


def _complaint(expression: str, problem: str) -> str:
    fields = len(expression.split())
    if problem.startswith("Bad "):
        field = problem.removeprefix("Bad ")
        takes = f"; it takes {FIELDS[field]}" if field in FIELDS else ""
        return f"cron({expression!r}): cannot read the {field}{takes}"
    if expression.strip().startswith("@"):
        hint = did_you_mean(expression.strip().lower(), NICKNAMES)
        return f"cron({expression!r}): the names are {', '.join(NICKNAMES)}.{hint}"
    number = "1 field" if fields == 1 else f"{fields} fields"
    return (
        f"cron({expression!r}) has {number}, not the five of minute, hour, day"
        " of month, month and day of week (or six, of which the first is seconds)"
    )


@lru_cache(maxsize=1_000)
def _is_fixed(expression: str) -> bool:
    """True if it names times of the day, rather than every so many of them."""
    *_, minute, hour, _, _, _ = expression.split()
    return not (minute.startswith("*") or hour.startswith("*"))


def _next_after(expression: str, zone: tzinfo, after: datetime) -> datetime | None:
    """Walk the wall clock from one change of its offset to the next."""
    fixed = _is_fixed(expression)
    now = (after - EPOCH) // SECOND  # exact, also far away
    wall, offset = _wall(now, zone), _offset(now, zone)
    if fixed and wall.fold:  # the second passage of a repetition
        wall = max(wall, _end_of_repetition(now, zone))
    wall += SECOND
    while True:
        match = _next_match(expression, wall)
        if match is None:
            return None
        fires = int((match.replace(tzinfo=UTC) - offset).timestamp())
        change = _first_change(zone, now, fires)
        if change is None:
            return datetime.fromtimestamp(fires, UTC)
        left, reached = _wall(change - 1, zone) + SECOND, _wall(change, zone)
        if left < reached and fixed and match < reached:  # in the gap
            return datetime.fromtimestamp(change, UTC)
        wall = max(left, reached) if fixed else reached
        now, offset = change, _offset(change, zone)


def _next_match(expression: str, wall: datetime) -> datetime | None:
    """The first time on the wall clock that matches, not before this one; so early that
    it can be read in every time zone."""
    try:
        match = next(CronSim(expression, wall - SECOND), None)
    except OverflowError:  # after the year 9999
        return None
    last = READABLE[1].replace(tzinfo=None)
    return None if match is None or match > last else match


def _offset(second: int, zone: tzinfo) -> timedelta:
    offset = datetime.fromtimestamp(second, zone).utcoffset()
    assert offset is not None
    return offset


def _wall(second: int, zone: tzinfo) -> datetime:
    """The wall clock, without its zone but with its fold."""
    return datetime.fromtimestamp(second, zone).replace(tzinfo=None)


def _end_of_repetition(second: int, zone: tzinfo) -> datetime:
    """The last second of wall clock time of the second passage in which this one is."""
    first = _wall(second, zone).replace(fold=0, tzinfo=zone).utcoffset()
    assert first is not None
    length = int((first - _offset(second, zone)).total_seconds())
    change = _first_change(zone, second - length, second)
    assert change is not None
    return _wall(change - 1, zone)


def _first_change(zone: tzinfo, after: int, until: int) -> int | None:
    """The first second after one, and not after the other, that has a new offset."""
    offset = _offset(after, zone)
    while after < until:
        low, high = after, min(after + 86_400, until)
        if _offset(high, zone) == offset:
            after = high
            continue
        while high - low > 1:
            middle = (low + high) // 2
            if _offset(middle, zone) == offset:
                low = middle
            else:
                high = middle
        return high
    return None
