"""How far something is: as a share of the whole, and in words."""

from __future__ import annotations

import math
from typing import Final

from django.utils.translation import gettext

from django_jobqueue.text import numbers

DECIMALS: Final = 2


def fraction(done: float | None, total: float | None) -> float | None:
    """The share that is done, 0 to 1; None if nobody knows how much there is."""
    if done is None or not total or total < 0:
        return None
    return min(1.0, max(0.0, done / total))


def percent(done: float | None, total: float | None) -> int | None:
    """The share in whole percent; 100 only when everything is done."""
    if done is None or not total or total < 0:
        return None
    return min(100, max(0, math.floor(done * 100 / total)))


def text(done: float | None, total: float | None) -> str:
    """ "30 of 120 (25 %)", or "30" of nobody knows how many; empty for nothing."""
    if done is None:
        return ""
    share = percent(done, total)
    if total is None or share is None:
        return number(done)
    said = gettext("%(done)s of %(total)s (%(percent)d %%)")
    return said % {"done": number(done), "total": number(total), "percent": share}


def number(value: float) -> str:
    """A number as it is written here, with two decimals at most."""
    rounded = round(value, DECIMALS)
    whole = int(rounded)
    if whole == rounded:
        return numbers.number(whole)
    return numbers.decimal(rounded, DECIMALS).rstrip("0")
