"""Rates: how many jobs of a type, or of a key, start in any window of some seconds."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from typing import Final, Literal

from django_jobqueue.domain.policy import LONGEST, whole

NO_RATE: Final = "unlimited"  # as an override
MOST_PER_SECOND: Final = 1_000_000  # starts: one each microsecond of the clock
LENGTH: Final = 100  # characters of the text form
EXAMPLES: Final = "100/60s, 100/m, 10/s or 5000/h, perhaps with burst 20 behind it"

# The normal text form, which statements read: "100/60s burst 10".
STORED: Final = r"^[1-9][0-9]{0,9}/[0-9]{1,10}([.][0-9]{1,6})?s burst [1-9][0-9]{0,9}$"
_GIVEN: Final = re.compile(
    r"\s*(?P<limit>\d{1,10})\s*/\s*(?P<count>\d{0,10}(?:\.\d{1,6})?)\s*"
    r"(?P<unit>s|m|min|h|d)?(?:[\s,]+burst\s*=?\s*(?P<burst>\d{1,10}))?\s*",
    re.ASCII,
)
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True)
class Rate:
    """At most this many starts in any window of this length, across the cluster::

        @job(rate=Rate(100, per=60))

    Each attempt is a start. The burst may start at once, and the others are spread
    evenly, so that no window has more than the limit, wherever it begins.

    A rate with a ``weight`` counts the weight of each job, such as its tokens::

        @job(rate=Rate(100_000, per=60, weight="tokens"))
        def complete(prompt: str, tokens: int) -> str: ...

    :param limit: the number of starts.
    :param per: the length of the window, in seconds or as a timedelta.
    :param burst: how many may start at once after a pause, at most half of the limit;
        by default a tenth of it.
    :param weight: the parameter with the job's weight, an integer, instead of 1; True
        if only ``using(weight=…)`` sets it.
    """

    limit: int
    _: KW_ONLY
    per: timedelta | float
    burst: int | None = None
    weight: str | Literal[True] | None = None

    @property
    def size(self) -> int:
        """How many may start at once after a pause."""
        return max(1, self.limit // 10) if self.burst is None else self.burst

    @property
    def window(self) -> timedelta:
        """The length of the window."""
        per = self.per
        return per if isinstance(per, timedelta) else timedelta(seconds=per)

    def wait(self, owed: timedelta, weight: int = 1) -> timedelta:
        """How long a start of this weight waits, if the bucket is full after this time.
        One that is heavier than the burst waits until it is full."""
        units = self.size - min(weight, self.size)
        may_be_owed = self._microseconds * units // self._spread * _MICROSECOND
        return max(timedelta(0), owed - may_be_owed)

    @property
    def _microseconds(self) -> int:
        return self.window // _MICROSECOND

    @property
    def _spread(self) -> int:
        """The starts that are spread over the window."""
        return self.limit - self.size + 1

    @property
    def text(self) -> str:
        """Its normal text form, such as ``100/60s burst 10``."""
        seconds = f"{self.window / timedelta(seconds=1):.6f}".rstrip("0").rstrip(".")
        return f"{self.limit}/{seconds}s burst {self.size}"

    def __str__(self) -> str:
        return self.text

    def problem(self) -> str | None:
        """Why these values are wrong, in words that follow "rate"."""
        if wrong := whole(1)(self.limit):
            return f"limit {wrong}"
        per = self.per
        seconds = per.total_seconds() if isinstance(per, timedelta) else per
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            return f"per must be a timedelta or a number of seconds, not {per!r}."
        if not _MICROSECOND.total_seconds() <= seconds <= LONGEST.total_seconds():
            return (
                f"per must be more than zero and at most {LONGEST.days:,} days, not "
                f"{per!r}: the length of the window in which {self.limit} may start."
            )
        if self.limit > MOST_PER_SECOND * seconds:
            return (
                f"must be at most {MOST_PER_SECOND:,} starts a second, not "
                f"{self.limit:,} in {seconds:g} s."
            )
        if self.burst is not None and (wrong := whole(1)(self.burst)):
            return f"burst {wrong}"
        if not (self.weight is None or self.weight is True) and (
            not isinstance(self.weight, str) or not self.weight
        ):
            return (
                "weight must be the name of a parameter, such as 'tokens', or True, "
                f"not {self.weight!r}."
            )
        if self.size > max(1, self.limit // 2):
            return (
                f"burst must be at most half of the limit, {max(1, self.limit // 2)}, "
                f"not {self.size}: so many start at once after a pause, and only the "
                "others are spread over the window. Choose a smaller burst, or a "
                "greater limit and a longer per."
            )
        return None


def rate_problem(value: object) -> str | None:
    """Why this is no rate, in words that follow the option."""
    if not isinstance(value, Rate):
        return f"must be a Rate, such as Rate(100, per=60), not {value!r}."
    return value.problem()


def parse_rate(text: str) -> Rate:
    """The rate of a text such as ``100/60s burst 10``, ``100/m`` or ``10/s``.

    Raises ValueError, with a sentence that follows the option.
    """
    match = _GIVEN.fullmatch(text)
    if match is None or not (match["count"] or match["unit"]):
        raise ValueError(f"must be a rate, such as {EXAMPLES}, not {text!r}.")
    unit = _SECONDS[match["unit"] or ""]
    seconds = float(match["count"] or 1) * unit
    burst = None if match["burst"] is None else int(match["burst"])
    rate = Rate(int(match["limit"]), per=seconds, burst=burst)
    if problem := rate.problem():
        raise ValueError(problem)
    return rate


def rate_override_problem(value: object) -> str | None:
    """Why an operator cannot give this rate, in words that follow the option."""
    if value is None or value == NO_RATE:
        return None
    if not isinstance(value, str):
        return f"must be a text, such as {EXAMPLES}, not {value!r}."
    try:
        parse_rate(value)
    except ValueError as error:
        return str(error)
    return None


def rate_override(value: str | None) -> str | None:
    """The override that this text states, in its normal form."""
    return value if value is None or value == NO_RATE else parse_rate(value).text


def rate_in_force(declared: str | None, override: str | None) -> Rate | None:
    """The rate in force, from the columns of a row; None is unlimited."""
    text = declared if override is None else override
    return None if text is None or text == NO_RATE else parse_rate(text)
