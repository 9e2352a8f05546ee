"""How much of their time slots were idle though a key permitted a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Note = tuple[int, Literal["start", "end"], str]  # when, in ns; what; of which key


@dataclass(frozen=True, kw_only=True)
class IdleSlots:
    """What the handlers' journal says of them."""

    share: float  # of their time
    most: int  # jobs of one key that ran at once


def idle_slots(notes: Iterable[Note], *, slots: int, limit: int) -> IdleSlots:
    """From when all slots were taken for the first time to the last start.

    All jobs wait from the beginning. An idle slot counts if a job that some key permits
    at that moment could have it; the time in which its claim is under way does, too.
    """
    ordered = sorted(notes)
    waiting = Counter(key for _, what, key in ordered if what == "start")
    running: Counter[str] = Counter()
    permitted = sum(min(limit, jobs) for jobs in waiting.values())
    taken = most = idle = 0
    since: int | None = None  # the last note, once all slots were taken
    begun = last_start = idle_until = 0
    for at, what, key in ordered:
        if since is not None:
            idle += (at - since) * min(slots - taken, permitted)
            since = at
        permitted -= min(limit - running[key], waiting[key])
        if what == "start":
            running[key] += 1
            waiting[key] -= 1
            taken += 1
            most = max(most, running[key])
            last_start, idle_until = at, idle
        else:
            running[key] -= 1
            taken -= 1
        permitted += min(limit - running[key], waiting[key])
        if since is None and taken == slots:
            since = begun = at
    if last_start <= begun:
        raise ValueError("The slots were never all taken.")
    return IdleSlots(share=idle_until / (slots * (last_start - begun)), most=most)
