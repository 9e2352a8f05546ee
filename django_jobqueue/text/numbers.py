"""Numbers, shares, lengths of time and sizes as people read them, in their language.

Every figure on a page is written here, so that the same one reads the same everywhere:
whole numbers are grouped, decimals have the separator of the language, and a share that
is not zero never reads as zero.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Final

from django.utils.formats import number_format
from django.utils.translation import gettext as _

NOTHING: Final = "–"
THOUSAND: Final = 1_000
MILLION: Final = 1_000_000
DECIMALS: Final = 2


def number(value: int) -> str:
    """A whole number: "48,211"."""
    if -THOUSAND < value < THOUSAND:  # nothing to group, in no language
        return str(value)
    return number_format(value, use_l10n=True, force_grouping=True)


def decimal(value: float, places: int = 1) -> str:
    """A number with so many digits after the point: "1,204.5"."""
    return number_format(
        f"{value:.{places}f}", places, use_l10n=True, force_grouping=True
    )


def at_least(value: int, cap: int) -> str:
    """A number that was counted no further than the cap: "10,000+"."""
    return f"{number(cap)}+" if value > cap else number(value)


def about(value: int) -> str:
    """A number that is known roughly: "≈ 15 K", "≈ 1.2 M"."""
    if value >= MILLION:
        return _("≈ %(number)s M") % {"number": decimal(value / MILLION)}
    if value >= THOUSAND:
        return _("≈ %(number)s K") % {"number": number(round(value / THOUSAND))}
    return _("≈ %(number)s") % {"number": number(value)}


def percent(share: float | None) -> str:
    """A share of a whole, 0 to 1: "4.1 %". Only none of it is "0 %", and only all of
    it "100 %"."""
    if share is None:
        return NOTHING
    if share <= 0:
        return _("%(percent)s %%") % {"percent": number(0)}
    if share < 0.001:
        return _("< %(percent)s %%") % {"percent": decimal(0.1)}
    if share >= 1:
        return _("%(percent)s %%") % {"percent": number(round(100 * share))}
    if share > 0.999:
        return _("> %(percent)s %%") % {"percent": decimal(99.9)}
    return _("%(percent)s %%") % {"percent": decimal(100 * share)}


def fraction(done: float | None, total: float | None) -> float | None:
    """The share that is done, 0 to 1; None if nobody knows how much there is."""
    if done is None or not total or total < 0:
        return None
    return min(1.0, max(0.0, done / total))


def whole_percent(done: float | None, total: float | None) -> int | None:
    """The same in whole percent, and 100 only when all is done."""
    if done is None or not total or total < 0:
        return None
    return min(100, max(0, math.floor(done * 100 / total)))


def done_text(done: float | None, total: float | None) -> str:
    """ "30 of 120 (25 %)", or "30" if the total is not known; empty for nothing."""
    if done is None:
        return ""
    share = whole_percent(done, total)
    if total is None or share is None:
        return rounded(done)
    text = _("%(done)s of %(total)s (%(percent)d %%)")
    return text % {"done": rounded(done), "total": rounded(total), "percent": share}


def rounded(value: float) -> str:
    """A number with two decimals at most: "30", "0.25"."""
    short = round(value, DECIMALS)
    whole = int(short)
    if whole == short:
        return number(whole)
    return decimal(short, DECIMALS).rstrip("0")


def megabytes(count: int) -> str:
    """A size in memory, given in bytes: "1,204 MB"."""
    return f"{number(round(count / 2**20))} MB"


def span(seconds: float) -> str:
    """A time span in one or two units: "40 s", "12 m", "2 h 10 m", "3 d 4 h"."""
    whole = max(0, int(seconds))
    if whole < 60:
        return _("%(s)d s") % {"s": whole}
    if whole < 3_600:
        return _("%(m)d m") % {"m": whole // 60}
    if whole < 86_400:
        return _("%(h)d h %(m)02d m") % {"h": whole // 3_600, "m": whole // 60 % 60}
    days, hours = number(whole // 86_400), whole // 3_600 % 24
    return _("%(d)s d %(h)d h") % {"d": days, "h": hours}


def run_time(seconds: float | None) -> str:
    """How long something took, given in seconds."""
    return duration(None if seconds is None else round(seconds * 1_000))


def duration(milliseconds: int | None) -> str:
    """How long something took: "7 ms", "20.2 s", "3 m 04 s", "2 h 10 m"."""
    if milliseconds is None:
        return NOTHING
    if milliseconds < 1_000:
        return _("%(ms)d ms") % {"ms": milliseconds}
    if milliseconds < 59_950:
        return _("%(s)s s") % {"s": decimal(milliseconds / 1_000)}
    seconds = round(milliseconds / 1_000)
    if seconds < 3_600:
        return _("%(m)d m %(s)02d s") % {"m": seconds // 60, "s": seconds % 60}
    return span(seconds)


def length(value: timedelta | None) -> str:
    """A time span as policies state them: "200 ms", "15 s", "1 h", "1 d 12 h"."""
    if value is None:
        return NOTHING
    whole = int(value.total_seconds())
    if value != timedelta(seconds=whole) or not whole:
        return duration(round(value.total_seconds() * 1_000))
    units = {
        _("%(n)s d"): whole // 86_400,
        _("%(n)s h"): whole // 3_600 % 24,
        _("%(n)s m"): whole // 60 % 60,
        _("%(n)s s"): whole % 60,
    }
    return " ".join(text % {"n": number(n)} for text, n in units.items() if n)
