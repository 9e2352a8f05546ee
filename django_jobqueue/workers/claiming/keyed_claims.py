"""Claims of one lane, key by key: where the circle of keys begins, and how many jobs
of each key to take at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue.claim_keyed import (
    NEXT_KEY,
    KeyedLane,
    adopt,
    claim_keyed,
    last_served,
    next_retry,
)
from django_jobqueue.store.queue.claim_keyed_rated import (
    LONGEST_WAIT,
    claim_keyed_rated,
)
from django_jobqueue.store.queue.claim_weighed import claim_keyed_weighed
from django_jobqueue.store.queue.lanes import START, LaneMark
from django_jobqueue.store.rows import ClaimedJob
from django_jobqueue.workers.claiming.lane_scanner import KnownLane
from django_jobqueue.workers.claiming.policies import KeyLimit, Policies

ADOPT_EVERY: Final = 1.0  # seconds between looks for jobs without a key


class KeyedClaims:
    """The claims of one turn of a lane."""

    def __init__(self, known: KnownLane, limit: KeyLimit, policies: Policies) -> None:
        self._known = known
        self._limit = limit
        self._locks_type = policies.is_limited(known.lane.job_type)
        by_weight = policies.counts_weights(known.lane.job_type)
        self._claim_rated = claim_keyed_weighed if by_weight else claim_keyed_rated
        self._is_rated = limit.has_rate or policies.has_rate(known.lane.job_type)
        # Until the next start is permitted, after the last claim; 0 if none waits.
        self.seconds_of_type = self.seconds_of_key = 0.0
        self.seconds_of_retry = 0.0  # until a job is due that goes before others

    def claim(
        self, db: OwnConnection, worker: int, lanes: Sequence[LaneMark], wanted: int
    ) -> list[ClaimedJob]:
        """Claim some jobs; first jobs that came without a key get theirs."""
        self._adopt(db)
        strict = self._limit.strict
        keyed = KeyedLane(
            lane=self._known.lane,
            limit_name=self._limit.name,
            locks_limit=self._limit.is_counted or self._is_rated or strict,
            locks_type=self._locks_type or self._is_rated,
            first=self._known.first_key,
            each=self._known.jobs_per_key,
            has_shares=self._limit.has_shares,
            strict=strict,
            taken=self._known.taken,
        )
        if self._is_rated:
            jobs, self.seconds_of_type, self.seconds_of_key = self._claim_rated(
                db, worker, keyed, wanted
            )
        else:
            jobs = claim_keyed(db, worker, keyed, wanted)
        if strict and len(jobs) < wanted:
            retry = next_retry(db, keyed.limit_name) or 0.0
            self.seconds_of_retry = min(retry, LONGEST_WAIT)
        return jobs

    def learn(self, jobs: Sequence[ClaimedJob], *, full: bool) -> None:
        """The next claim begins behind the key that was served last; or at it, if its
        turn may have been cut off."""
        keys = [job.limit_key for job in jobs if job.limit_key is not None]
        if not keys:
            return
        known = self._known
        last = last_served(known.first_key, keys)
        if full and self._limit.has_shares:
            before = known.taken if last == known.first_key else 0
            known.first_key, known.taken = last, before + keys.count(last)
        else:
            known.first_key, known.taken = last + NEXT_KEY, 0

    def wants_more(self, got: int, wanted: int) -> bool:
        """Whether to ask for more of each key after a claim that got less than was
        wanted; False if the lane has no more, or each key is at its limit, or could
        have given all that was wanted."""
        most = wanted if self._limit.most is None else min(wanted, self._limit.most)
        if not got or self._known.jobs_per_key >= most:
            return False
        self._known.jobs_per_key *= 2
        return True

    def was_full(self) -> None:
        """There may be more keys than there was room for."""
        self._known.jobs_per_key = max(1, self._known.jobs_per_key // 2)

    def _adopt(self, db: OwnConnection) -> None:
        known, now = self._known, time.monotonic()
        if now < known.adopt_at:
            return
        adopted, since = adopt(db, known.lane, known.adopted)
        known.adopted = START if since is None else since
        if not adopted or since is None:
            known.adopt_at = now + ADOPT_EVERY
