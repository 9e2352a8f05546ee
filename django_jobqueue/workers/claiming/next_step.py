"""Decides what a dispatcher does next: ``next_step``, and for how long it waits when
there is nothing to do: ``next_wait``. Both are pure functions.

The first rule that fits holds:

====  ================================================  ==============
rule  what is known                                     next step
====  ================================================  ==============
1     it is to claim nothing, and is listening          STOP_LISTENING
2     it is to claim nothing                            none
3     policies changed, or were read long ago           READ_POLICIES
4     a scan found due jobs                             CLAIM
5     jobs arrived, there may be more than was          CLAIM, once
      claimed, or a rate permits a start                in a round
6     a scan is due, or nothing was found and nothing   SCAN, once
      else says where there are jobs                    in a round
7     it is listening, and jobs arrive fast, or there   STOP_LISTENING
      were more than it has slots for a while
8     nothing was found, and it is not listening        LISTEN
9     anything else                                     none
====  ================================================  ==============

A worker listens if its row says that it is idle, so that enqueues send a notification.
Who waits is woken by whatever happens: a notification, a free slot, an operator. A
``Wait`` is for what nobody says, and ends at the first of its reasons.
"""

from __future__ import annotations

import math
from enum import Enum, auto
from operator import itemgetter
from typing import Final, NamedTuple

from django_jobqueue.processes.loop import FOREVER

# Seconds to wait after each round that found nothing. The first ones are short: a job
# may have been committed just before this worker said that it listens.
FIRST: Final = (0.05, 0.05, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
LONGEST_UNHEARD: Final = 1.0  # seconds; the longest wait without notifications

# Jobs that arrive this fast, for this long, are polled for: commits with a notification
# wait for each other, and claims get larger when the worker pauses between them.
APART: Final = 0.0025  # seconds from the end of a round to the next one
FAST_AFTER: Final = 0.05  # seconds
POLL: Final = 0.005  # seconds

BUSY_AFTER: Final = 1.0  # seconds of full claims after which no notification is wanted
KNOWN_AFTER: Final = 1.0  # seconds after which every enqueue knows of an idle worker
NUDGE_EVERY: Final = 0.02  # seconds between checks whether the buffer moves
SCAN_EVERY: Final = 1.0  # seconds, while busy
LIMIT_RETRY: Final = 1.0  # seconds until a type at its limit is asked for again

SECONDS: Final = itemgetter(0)  # of a reason to wait


class Known:
    """The state of a dispatcher. Moments are of ``time.monotonic()``."""

    # Class attributes as defaults: cheaper than a dataclass when a process starts.

    # Set from any thread, which wakes the dispatcher afterwards.
    is_open = True  # it is to claim
    policies_changed = True
    jobs_arrived = True  # and no claim has begun since
    may_have_more = True  # than was claimed: a claim was full, or something ended since

    # Of this round.
    began = 0.0
    may_scan = True  # if not, new jobs wait, too: the last scan took long
    has_claimed = False
    is_for_news = False  # of those claims, one was for new jobs
    is_for_rate = False  # and one since a rate permits a start
    has_scanned = False
    has_scanned_since = False  # the last claim
    has_due_lanes = False  # a scan found due jobs that no claim has asked for yet
    is_out_of_lanes = False  # those that were due are; others may be by now
    taken = 0  # jobs
    has_listened = False  # since nothing was found

    # Of earlier ones.
    full_since: float | None = None  # if there were more jobs than slots since then
    empty_rounds = 0  # in a row
    ended = 0.0  # the last round
    fast_since = 0.0  # claims found jobs soon after each other

    # Of slots.
    has_room = False  # a slot is free

    # Of lanes.
    scan_at = 0.0  # a scan is due even while claims find jobs
    pause = 0.0  # seconds until one may begin
    job_due_at = math.inf  # of those that a scan saw, the first that is for later
    may_have_left_jobs = False  # a claim within a limit took some
    next_start_in = math.inf  # seconds until a rate permits a start

    # Of policies and notifications.
    policies_due_at = 0.0
    hears = False  # notifications arrive
    is_listening = False
    listening_since = 0.0
    listen_at = 0.0  # until then somebody has locked the worker's row

    # Only of a wait.
    poll_in = math.inf  # seconds until it polls if nobody says anything
    has_room_again = False  # of an executor that had none
    has_buffered = False  # jobs wait for a slot
    full_scan_wanted = False  # there may be jobs that claims have passed
    is_limited = False  # something may be at its limit
    retry_in = math.inf  # seconds until a type that was refused is asked for again

    def begin(self, now: float) -> None:
        """A round begins."""
        self.began, self.taken = now, 0
        self.has_claimed = self.is_for_news = self.is_for_rate = False
        self.has_scanned = self.has_due_lanes = self.has_listened = False

    def was_woken(self) -> None:
        """The wait was cut short, so the next one is no longer. Else several wake-ups,
        while a transaction with a job that told nobody is open, lead to a long one."""
        self.empty_rounds = max(0, self.empty_rounds - 1)

    def end(self, wait: Wait, now: float) -> None:
        """A round ends."""
        self.fast_since, self.ended = fast_since(self, now), now
        self.empty_rounds = wait.empty_rounds
        if wait.because is Because.FAST:
            self.jobs_arrived = True


class Do(Enum):
    """A step that asks the database."""

    READ_POLICIES = auto()
    CLAIM = auto()
    SCAN = auto()
    LISTEN = auto()
    STOP_LISTENING = auto()


class Because(Enum):
    """Why a dispatcher rests, and what it waits for unless it is woken."""

    STOPPED = "it is to claim nothing"
    ROOM = "a slot came free meanwhile"
    BUFFER = "jobs wait for a slot"
    FULL = "there are more jobs than slots"
    SCAN = "there may be more jobs after the next scan"
    NEW_LISTENER = "jobs may have come before it listened"
    FAST = "jobs arrive fast"
    UNHEARD = "notifications do not arrive"
    IDLE = "there are no jobs"
    LIMIT = "jobs are at their limit"
    RATE = "the next start is not permitted yet"
    REFUSED = "claims of a job type failed"
    LATER = "a job is due later"
    PASSED = "jobs may be where claims have passed"
    UNSCANNED = "jobs may be in other lanes, or due later in the same ones"
    LONG_SCAN = "the last scan took long"


class Wait(NamedTuple):
    """The end of a round."""

    seconds: float
    because: Because
    empty_rounds: int = 0  # in a row, with this one


def next_step(known: Known, now: float) -> Do | None:
    """The next query by the rules above; None if there is none."""
    may_set = now >= known.listen_at
    if not known.is_open:
        return Do.STOP_LISTENING if known.is_listening and may_set else None
    if known.policies_changed or now >= known.policies_due_at:
        return Do.READ_POLICIES
    if known.has_due_lanes or _is_to_claim(known):
        return Do.CLAIM
    if _is_to_scan(known, now):
        return Do.SCAN
    if may_set and known.is_listening and _needs_no_notification(known, now):
        return Do.STOP_LISTENING
    if may_set and not known.is_listening and _needs_notification(known):
        return Do.LISTEN
    return None


def _is_to_claim(known: Known) -> bool:
    if known.has_claimed:
        return False
    if known.may_have_more or known.next_start_in <= 0:
        return True
    return known.jobs_arrived and known.may_scan


def _is_to_scan(known: Known, now: float) -> bool:
    if not known.may_scan or known.has_scanned:
        return False
    if now >= known.scan_at or known.is_out_of_lanes:
        return known.has_room or bool(known.taken)
    if known.may_have_left_jobs:
        return known.has_room
    if known.taken or not known.has_room:
        return False
    # While a rate holds jobs back, it claims for it up to 50 times a second. Afterwards
    # only a scan knows when the next job of the lane is due.
    waits_for_rate = known.is_for_rate and known.next_start_in < math.inf
    if waits_for_rate and now < known.job_due_at:
        return known.is_for_news
    return known.is_for_news or not known.may_have_more


def _needs_no_notification(known: Known, now: float) -> bool:
    since = known.full_since if known.may_have_more else None
    if since is not None and now - since > BUSY_AFTER:
        return True
    return now - fast_since(known, now) >= FAST_AFTER


def _needs_notification(known: Known) -> bool:
    return known.hears and not known.taken and not known.may_have_more


def fast_since(known: Known, now: float) -> float:
    """Since when rounds have found jobs soon after each other, with this one."""
    was_fast = known.ended - known.fast_since >= FAST_AFTER
    is_apart = known.began - known.ended > APART
    if not known.taken or (is_apart and not was_fast):
        return now
    return known.fast_since


def next_wait(known: Known, now: float) -> Wait:
    """For how long at most to wait after the last step of a round, and why."""
    if not known.is_open:
        return Wait(FOREVER, Because.STOPPED, known.empty_rounds)
    is_notified = known.hears and known.is_listening
    is_notified_at_once = is_notified and now - known.listening_since > KNOWN_AFTER
    got_some = known.taken or known.may_have_more
    # Poll often at first, when there is nothing more.
    rounds = 0 if got_some and not is_notified_at_once else known.empty_rounds
    if known.may_have_more:
        reasons = [_wait_with_more(known, now)]
    elif known.has_listened:
        reasons = [(0.0, Because.NEW_LISTENER)]
    elif known.taken and known.hears and now - fast_since(known, now) >= FAST_AFTER:
        return Wait(min(POLL, known.next_start_in), Because.FAST, rounds)
    else:
        reasons = [_wait_without_more(known, now, rounds, is_notified=is_notified)]
        rounds += 1
    reasons.append((known.next_start_in, Because.RATE))
    if known.taken and known.has_room and not known.has_scanned_since:
        reasons.append((SCAN_EVERY, Because.UNSCANNED))
    if not known.may_scan:
        reasons.append((known.pause, Because.LONG_SCAN))
    seconds, because = min(reasons, key=SECONDS)
    return Wait(seconds, because, rounds)


def _wait_with_more(known: Known, now: float) -> tuple[float, Because]:
    """An executor that has room for it wakes the dispatcher."""
    if known.has_room_again:
        return 0.0, Because.ROOM  # it said so before there was more
    if known.has_buffered:
        return NUDGE_EVERY, Because.BUFFER
    if known.has_room:
        return max(known.pause, known.scan_at - now), Because.SCAN
    return known.poll_in, Because.FULL


def _wait_without_more(
    known: Known, now: float, rounds: int, *, is_notified: bool
) -> tuple[float, Because]:
    reasons = [
        (known.poll_in, Because.IDLE),
        (known.retry_in, Because.REFUSED),
        (max(0.001, known.job_due_at - now), Because.LATER),
    ]
    if not is_notified:
        reasons.append((LONGEST_UNHEARD, Because.UNHEARD))
    if known.is_limited:
        reasons.append((LIMIT_RETRY, Because.LIMIT))
    if known.full_scan_wanted:
        reasons.append((SCAN_EVERY, Because.PASSED))
    seconds, because = min(reasons, key=SECONDS)
    if rounds < len(FIRST):
        seconds = min(seconds, FIRST[rounds])
    return seconds, because
