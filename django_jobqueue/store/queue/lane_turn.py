"""The turn of one lane: the claim that its limits need, chosen in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue import claim, claim_limited
from django_jobqueue.store.queue.claim_rated import claim_rated
from django_jobqueue.store.queue.claim_weighed import claim_weighed
from django_jobqueue.store.queue.keyed_turn import KeyedTurn, KeyTurns
from django_jobqueue.store.queue.lanes import LaneMark
from django_jobqueue.store.queue.limits_in_force import Limits
from django_jobqueue.store.rows import ClaimedJob, Lane

T = TypeVar("T")


class PlainTurn:
    """One claim, within the limit and the rate of the job type. The seconds are of the
    last claim; 0 if nothing waits for them."""

    is_cut_off = False
    seconds_of_key = seconds_of_retry = 0.0

    def __init__(self, limits: Limits, *, ignores_rates: bool) -> None:
        self.seconds_of_type = 0.0
        self._limits = limits
        self._ignores_rates = ignores_rates

    def claim(
        self, db: Database, worker: int, lanes: Sequence[LaneMark], wanted: int
    ) -> list[ClaimedJob]:
        """Claim up to so many jobs of the lane, the only one."""
        limits, keeps_rates = self._limits, not self._ignores_rates
        if limits.has_rate and keeps_rates:
            rated = claim_weighed if limits.counts_weights else claim_rated
            jobs, self.seconds_of_type = rated(db, worker, lanes, wanted)
            return jobs
        if limits.is_limited or limits.has_rate:
            return claim_limited.claim_limited(
                db, worker, lanes, wanted, keeps_rates=keeps_rates
            )
        return claim.claim(db, worker, lanes, wanted)

    def goes_on(self, got: int, wanted: int) -> bool:
        """There is no more."""
        return False


Turn = PlainTurn | KeyedTurn


def turn_of(
    lane: Lane,
    limits: Limits,
    turns: KeyTurns,
    *,
    ignores_rates: bool = False,
    may_go_on: Callable[[], bool] = lambda: True,
) -> Turn:
    """The next turn of a lane. ``ignores_rates``: the caller's time does not pass;
    ``may_go_on``: whether to look at still more keys."""
    if limits.keys is None:
        return PlainTurn(limits, ignores_rates=ignores_rates)
    return KeyedTurn(
        lane,
        turns,
        limits.keys,
        limits,
        ignores_rates=ignores_rates,
        may_go_on=may_go_on,
    )


def fill(
    jobs: list[T], wanted: int, turn: Turn, claim_some: Callable[[int], list[T]]
) -> None:
    """Claim by this function until the list has as many as are wanted, or the turn has
    no more."""
    while (left := wanted - len(jobs)) > 0:
        more = claim_some(left)
        jobs += more
        if len(more) < left and not turn.goes_on(len(more), left):
            return
