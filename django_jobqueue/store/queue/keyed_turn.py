"""Turns of a lane whose job type has a limit by key: where the circle of its keys
begins, how many jobs of each key are taken at once, and how far a turn looks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue.claim_keyed import (
    KeyedLane,
    adopt,
    claim_keyed,
    next_retry,
    stopped,
)
from django_jobqueue.store.queue.claim_keyed_rated import (
    LONGEST_WAIT,
    claim_keyed_rated,
)
from django_jobqueue.store.queue.claim_weighed import claim_keyed_weighed
from django_jobqueue.store.queue.lanes import START, LaneMark, Mark
from django_jobqueue.store.queue.limits_in_force import KeyLimit, Limits
from django_jobqueue.store.rows import ClaimedJob, Lane

NEXT_KEY: Final = "\x01"  # the least text after a key is the key and this
ADOPT_EVERY: Final = 1.0  # seconds between looks for jobs without a key
COUNT_EVERY: Final = 1.0  # seconds between looks whether there are many keys


@dataclass(slots=True)
class KeyTurns:
    """A process's memory of the keys of a lane."""

    first: str = ""  # the key that the circle begins at
    taken: int = 0  # jobs of that key in its turn, which goes on
    each: int = 1  # jobs of a key at once
    few_until: float = -math.inf  # time.monotonic(); one claim looks at all of them
    adopted: Mark = START  # up to here every job has a key
    adopt_at: float = -math.inf  # time.monotonic(); from then on there may be others

    def learn(self, jobs: Sequence[ClaimedJob], *, cut_off: bool) -> None:
        """The next claim begins after the key that was served last; or at it, if its
        turn was ``cut_off``."""
        keys = [job.limit_key for job in jobs if job.limit_key is not None]
        if not keys:
            return
        last = last_served(self.first, keys)
        if cut_off:
            before = self.taken if last == self.first else 0
            self.first, self.taken = last, before + keys.count(last)
        else:
            self.first, self.taken = last + NEXT_KEY, 0

    def was_full(self) -> None:
        """There may be more keys than there was room for."""
        self.each = max(1, self.each // 2)

    def adopt_all(self, db: Database, lane: Lane) -> None:
        """Give all jobs that came without a key theirs."""
        since: Mark | None = START
        while since is not None:
            _, since = adopt(db, lane, since)
        self.adopt_at = time.monotonic() + ADOPT_EVERY

    def adopt(self, db: Database, lane: Lane) -> None:
        """Now and then, give jobs that came without a key theirs, some at a time."""
        now = time.monotonic()
        if now < self.adopt_at:
            return
        adopted, since = adopt(db, lane, self.adopted)
        self.adopted = START if since is None else since
        if not adopted or since is None:
            self.adopt_at = now + ADOPT_EVERY


class KeyedTurn:
    """The claims of one turn of a lane.

    A claim looks at so many keys. Where there are more, and it gets less than was
    wanted, the next one looks at the keys of the oldest jobs that are due. If these are
    too many as well, the others go on around the circle, as long as they may; the next
    turn begins where this one ended. So a key that has room is found however many
    before it have none, or have jobs for later alone.
    """

    def __init__(
        self,
        lane: Lane,
        turns: KeyTurns,
        keys: KeyLimit,
        limits: Limits,
        *,
        ignores_rates: bool,  # the caller's time does not pass
        may_go_on: Callable[[], bool],
    ) -> None:
        self.is_cut_off = False  # there are keys that it did not look at
        # Until the next start is permitted, after the last claim; 0 if none waits.
        self.seconds_of_type = self.seconds_of_key = 0.0
        self.seconds_of_retry = 0.0  # until a job is due that goes before others
        self._turns = turns
        self._is_rated = (keys.has_rate or limits.has_rate) and not ignores_rates
        self._keyed = KeyedLane(
            lane=lane,
            limit_name=keys.name,
            locks_limit=keys.is_counted or self._is_rated or keys.strict,
            locks_type=limits.is_limited or self._is_rated,
            has_shares=keys.has_shares,
            strict=keys.strict,
            ignores_rates=ignores_rates,
        )
        by_weight = limits.counts_weights
        self._claim_rated = claim_keyed_weighed if by_weight else claim_keyed_rated
        self._most = keys.most
        self._may_go_on = may_go_on
        self._begin = turns.first
        self._oldest = False  # the next claim looks at the keys of the oldest jobs
        self._stopped: str | None = None  # the last key that the last claim looked at
        self._furthest: str | None = None  # the last key that was looked at before
        self._oldest_are_all = True

    def claim(
        self, db: Database, worker: int, lanes: Sequence[LaneMark], wanted: int
    ) -> list[ClaimedJob]:
        """Claim some jobs, of each key in turn; first, jobs without a key get one."""
        turns = self._turns
        turns.adopt(db, self._keyed.lane)
        keyed = self._keyed._replace(
            first=turns.first,
            taken=turns.taken,
            each=turns.each,
            oldest=self._oldest,
        )
        if self._is_rated:
            jobs, self.seconds_of_type, self.seconds_of_key = self._claim_rated(
                db, worker, keyed, wanted
            )
        else:
            jobs = claim_keyed(db, worker, keyed, wanted)
        is_full = len(jobs) >= wanted
        if not (is_full or keyed.oldest or time.monotonic() < turns.few_until):
            self._stopped, self._oldest_are_all = stopped(db, keyed)
        if keyed.strict and not is_full:
            retry = next_retry(db, keyed.limit_name) or 0.0
            self.seconds_of_retry = min(retry, LONGEST_WAIT)
        turns.learn(jobs, cut_off=is_full and keyed.has_shares)
        return jobs

    def goes_on(self, got: int, wanted: int) -> bool:
        """True to claim again, after a claim that got less than was wanted."""
        return self._wants_more(got, wanted) or self._reads_further()

    def _wants_more(self, got: int, wanted: int) -> bool:
        """True to ask for more of each key; False if there is no more, or each key is
        at its limit, or could have given all that was wanted."""
        most = wanted if self._most is None else min(wanted, self._most)
        if not got or self._turns.each >= most:
            return False
        self._turns.each *= 2
        return True

    def _reads_further(self) -> bool:
        """True to look at other keys."""
        last, self._stopped = self._stopped, None
        if self._oldest:
            self._oldest = False
            return not self._oldest_are_all and self._goes_around(self._furthest)
        if last is None:
            self._turns.few_until = time.monotonic() + COUNT_EVERY
            return False
        if self._furthest is None:
            self._furthest, self._oldest = last, True
            return True
        if self._place(last) <= self._place(self._furthest):
            return False  # it was everywhere
        self._furthest = last
        return self._goes_around(last)

    def _goes_around(self, last: str | None) -> bool:
        assert last is not None
        self._turns.first, self._turns.taken = last + NEXT_KEY, 0
        self.is_cut_off = not self._may_go_on()
        return not self.is_cut_off

    def _place(self, key: str) -> tuple[bool, str]:
        """In the circle."""
        return key < self._begin, key


def last_served(first: str, keys: Iterable[str]) -> str:
    """The last of these keys in the circle that begins at the first."""
    return max(keys, key=lambda key: (key < first, key))
