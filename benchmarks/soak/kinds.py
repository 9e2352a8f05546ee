"""The kinds of jobs of the soak: how many come, and how often each is run."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

WAIT: Final = 20.0  # seconds from the enqueue of a scheduled job until it is due
ATTEMPTS: Final = 3  # of a job that is retried
BURST_EVERY: Final = 30.0  # seconds
BURST: Final = 2_000  # jobs
KEYS: Final = 50
RATED_EVERY: Final = 4.0  # seconds
RATED_BURST: Final = 60  # jobs
RATE: Final = 30  # starts a second, twice as many as come


class Mix(IntEnum):
    """A kind of jobs; the journal has its number."""

    SHORT = 0
    WAITING = 1  # async, for 100 ms
    LONG = 2  # 10 s
    FAILING = 3
    RETRYING = 4
    SCHEDULED = 5
    ATOMIC = 6  # writes a row with its own end
    LIMITED = 7  # three at once in the whole cluster, 50 ms each
    BULK = 8  # short, many at once
    KEYED = 9  # one of each key at a time, 20 ms each
    KEYED_END = 10  # what the one before says when it ends
    RATED = 11  # comes in bursts, and starts at a rate

    @property
    def runs(self) -> int:
        """How often each job is started."""
        return ATTEMPTS if self is Mix.RETRYING else 1


PER_SECOND: Final = {
    Mix.SHORT: 100.0,
    Mix.WAITING: 20.0,
    Mix.LONG: 0.2,
    Mix.FAILING: 2.0,
    Mix.RETRYING: 3.0,
    Mix.SCHEDULED: 10.0,
    Mix.ATOMIC: 20.0,
    Mix.LIMITED: 10.0,
    Mix.KEYED: 20.0,
}
