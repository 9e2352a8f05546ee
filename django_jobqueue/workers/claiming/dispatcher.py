"""Keeps the slots busy: claims, scans lanes, and waits."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.processes.idle import (
    POLL,
    BurstDetector,
    IdleBackoff,
    ListeningFlag,
)
from django_jobqueue.processes.loop import FOREVER, Loop
from django_jobqueue.processes.process_table import LeaseOverdue
from django_jobqueue.processes.worker_relay import (
    ASYNC_ROOM,
    CHECKS,
    MORE,
    NO_ROOM,
    SYNC_ROOM,
    WAKE,
    WorkerNews,
)
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.notify import News, parse
from django_jobqueue.workers.claiming.cancellation_poll import CancellationPoll
from django_jobqueue.workers.claiming.claimer import LIMIT_RETRY, Claimer
from django_jobqueue.workers.claiming.lane_scanner import SCAN_EVERY, LaneScanner
from django_jobqueue.workers.claiming.policies import Policies, PolicyReader
from django_jobqueue.workers.executors.base import STALE, Executor

logger = logging.getLogger("django_jobqueue.worker")

LONGEST_UNHEARD: Final = 1.0  # seconds; the longest wait without LISTEN
BUSY_AFTER: Final = 1.0  # seconds of full claims after which no notification is wanted
UNLEASED: Final = 0.1  # seconds between looks whether the lease was renewed
NUDGE_EVERY: Final = 0.02  # seconds between checks whether the buffer moves
RELOAD_EVERY: Final = 120.0  # seconds between reads of the overrides
RELOAD_UNHEARD: Final = 30.0  # likewise without LISTEN


class Dispatcher(Loop):
    """Claims when slots are free and there may be jobs; now and then scans the lanes,
    too."""

    name = "dispatcher"

    def __init__(
        self,
        worker: int,
        connection: OwnConnection,
        claimer: Claimer,
        *,
        policies: Policies,
        cancellation_poll: CancellationPoll,
        gets_notifications: Callable[[], bool] = lambda: False,
        host_news: WorkerNews | None = None,
        pass_on: Callable[[News, str], None] = lambda news, about: None,
    ) -> None:
        super().__init__()
        self.executors: list[Executor] = []
        self._listening = ListeningFlag(worker, connection)
        self._connection = connection
        self.claimer = claimer
        self.lane_selection = claimer.lane_selection
        lanes, queues = self.lane_selection.lanes, self.lane_selection.queues
        self.scanner = LaneScanner(connection, lanes, queues)
        self._reader = PolicyReader(worker, connection, policies)
        self._cancellation_poll = cancellation_poll
        self._gets_notifications = gets_notifications
        self._host_news = host_news  # if the host listens for this worker
        self._pass_on = pass_on  # a notification
        self._heard = self._behind_heard = 0  # by the host, when a claim began
        self.rounds = 0  # how many have begun
        self._finished = 0  # how often jobs finished here
        self._idle_at: int | None = None  # the same, when an idle round began
        self._open = True
        self._hungry = True  # there may be more to claim
        self._full: list[Executor] = []  # those that had no room for it
        self._is_out_of_lanes = False  # those that were due are; others may be by now
        self._news = self._reload = True
        self._may_scan = True  # in this round; if not, the news wait
        self._taken = 0  # jobs, in the last round
        self._idle_backoff, self._bursts = IdleBackoff(), BurstDetector()
        self._full_since: float | None = None
        self._next_reload = 0.0

    # What others tell it, from any thread.

    def jobs_arrived(self, *, behind: bool = False) -> None:
        """There are new jobs; ``behind``: perhaps where a claim has passed already."""
        self._news = True
        if behind:
            self.scanner.want_full_scan()
        self.wake()

    def policies_changed(self) -> None:
        """Operators overrode, paused or resumed something."""
        self._reload = True
        self.jobs_arrived(behind=True)

    def slot_free(self) -> None:
        """An executor could do with more."""
        if self._hungry:
            self.wake()

    def ended(self, attempts: Sequence[Attempt]) -> None:
        """These are finished, so that a type at its limit may have room."""
        self._finished += 1
        self.slot_free()  # perhaps too many outcomes waited to be written
        selection = self.lane_selection
        if selection.limited_until and selection.finished(attempts):
            self._hungry = True
            self.wake()

    def close_doors(self) -> None:
        """Claim nothing more."""
        self._open = False
        self.wake()

    def open_doors(self) -> None:
        """Claim again."""
        self._open = True
        self.jobs_arrived(behind=True)

    @property
    def is_idle(self) -> bool:
        """Whether the last round found nothing and nothing ended since it began."""
        return self._idle_at == self._finished

    # The work.

    def tick(self) -> float:
        """Claim what there are slots for, while this worker has a lease."""
        try:
            return self._work()
        except LeaseOverdue:
            self._news = True
            self.lane_selection.limited_until.clear()
            self.scanner.want_full_scan()
            return UNLEASED

    def _work(self) -> float:
        self._may_scan = not self.scanner.pause
        if self._host_news is None:
            return min(self._round(), self.claimer.unconfirmed.seconds_until_due)
        return self._answering_round(self._host_news)

    def wake(self) -> None:
        """End the wait, or make the next one short."""
        super().wake()
        if self.is_resting and self._host_news is not None:
            self._host_news.ring()

    def _sleep(self, seconds: float) -> None:
        """Wait so long, or until somebody wakes it, be it the host's listener."""
        news = self._host_news
        if news is None:
            super()._sleep(seconds)
            return
        readiness = self._readiness(seconds)
        news.set_readiness(readiness)  # first: see idle.py
        missed = readiness != 0 and self._may_scan and news.jobs_heard != self._heard
        self._listen(news, 0.0 if missed or self._woken.is_set() else seconds)
        news.set_readiness(readiness | CHECKS if readiness else 0)

    def _sleep_after_error(self, seconds: float) -> None:
        """Wait so long after a failure, but pass notifications on."""
        news, until = self._host_news, time.monotonic() + seconds
        if news is None:
            super()._sleep_after_error(seconds)
            return
        news.set_readiness(0)
        while not self._stop_requested.is_set() and time.monotonic() < until:
            self._listen(news, until - time.monotonic())

    def _listen(self, news: WorkerNews, seconds: float) -> None:
        for text in news.wait(seconds):
            if text == WAKE:
                self._news = True
            elif (heard := parse(text)) is not None:
                self._pass_on(*heard)

    def _readiness(self, seconds: float) -> int:
        """What it is to be woken for while it waits so long."""
        room = _room_of(e for e in self.executors if e.free) if self._open else 0
        return room | CHECKS if room and seconds <= POLL else room

    def _answering_round(self, news: WorkerNews) -> float:
        """A round whose result the host's listener waits for."""
        heard, behind = news.jobs_heard, news.behind_heard
        if heard != self._heard:
            self._news = True
        if behind != self._behind_heard:
            self._behind_heard = behind
            self.scanner.want_full_scan()
        was_woken = self._news and self._may_scan
        can_claim = self._open and self._has_room and self._may_scan
        wait = min(self._round(), self.claimer.unconfirmed.seconds_until_due)
        hands_on = self._taken or was_woken
        if self._full and hands_on and self.lane_selection.may_have_more:
            news.pass_on(MORE if self._taken else NO_ROOM, _room_of(self._full))
        if can_claim:  # last: with all answers, the listener takes the jobs for claimed
            self._heard = heard
            news.answer(heard)
        return wait

    def _round(self) -> float:
        finished, self._idle_at = self._finished, None
        began, self._taken = time.monotonic(), 0
        self.rounds += 1
        self._catch_up()
        if not self._open:
            self._listening.put(False)
            return self._closed_wait()
        news = self._news and self._may_scan
        if news:
            self._news = False
            self.lane_selection.jobs_arrived()
        starts = self.lane_selection.starts_are_permitted()
        taken = self._claim(news=news) if news or self._hungry or starts else 0
        scanned = self.scanner.has_scanned_since(began)
        if (
            self._may_scan
            and not scanned
            and self._should_scan(taken, news=news, starts=starts)
            and self._scan()
        ):
            taken += self._claim(has_scanned=True)
        waits = self._hungry or self.lane_selection.waits_for_start
        if not taken and not waits and self._may_scan:
            self._idle_at = finished
        self._taken = taken
        self._bursts.see(taken, began, time.monotonic())
        wait = min(self._wait(taken), self.lane_selection.next_starts.seconds)
        if taken and self._has_room and not self.scanner.has_scanned_since(began):
            wait = min(wait, SCAN_EVERY)  # news may be of a lane that it does not know
        return wait if self._may_scan else min(wait, self.scanner.pause)

    def _closed_wait(self) -> float:
        """Seconds to wait while nothing may be claimed. What runs can be cancelled."""
        now = time.monotonic()
        return min(FOREVER, self._cancellation_poll.poll(self._connection, now))

    def close(self) -> None:
        """Give back what was not started; let the connection go."""
        self._open = False
        try:
            self._catch_up()
        except StoreUnavailable:
            logger.warning("What was claimed and not started could not be given back")
        self._connection.close()

    def _catch_up(self) -> None:
        """Bring policies, cancels and unconfirmed claims up to date before a claim."""
        self.claimer.release_unconfirmed()
        now = time.monotonic()
        for executor in self.executors:
            if not self._open or executor.oldest_wait(now) > STALE:
                self.claimer.give_back(executor.take_back())
            executor.nudge()
        if not self._open:
            return
        self._cancellation_poll.poll(self._connection, now)
        if self._reload or now >= self._next_reload:
            self._load_policies(now)

    def _load_policies(self, now: float) -> None:
        if not self._next_reload:
            self.claimer.warm_up()
        self._reload = False
        self._reader.read()
        self.lane_selection.limited_until.clear()
        self.lane_selection.next_starts.ask_all()
        self.lane_selection.resting.end_waits()
        self._next_reload = now + (
            RELOAD_EVERY if self._gets_notifications() else RELOAD_UNHEARD
        )

    def _claim(self, *, news: bool = False, has_scanned: bool = False) -> int:
        """Claim for each executor; return how many jobs there were. Where more than one
        statement could find some, a probe says first which lanes have jobs. While many
        lanes have more, what was found of late is enough."""
        are_many = self.lane_selection.lanes.are_many
        goes_on = are_many and not (news or has_scanned)
        began, was_hungry, self._hungry = time.monotonic(), self._hungry, False
        taken, self._full = 0, []
        wanting = [executor for executor in self.executors if executor.wants_more]
        probe = self.lane_selection.takes_several_statements(wanting)
        if probe and not (goes_on or has_scanned):
            self.scanner.probe()
        for executor in self.executors:
            got, more = self.claimer.fill(executor, due=probe or are_many)
            taken += got
            self._full += [executor] * more
        self._hungry = self._hungry or bool(self._full)
        self._full_since = (self._full_since or began) if self._hungry else None
        self._is_out_of_lanes = goes_on and was_hungry and not self._hungry
        return taken

    def _should_scan(self, taken: int, *, news: bool, starts: bool) -> bool:
        if self.scanner.is_due or self._is_out_of_lanes:
            return self._has_room or bool(taken)
        if self.lane_selection.may_have_left_jobs:
            return self._has_room
        if taken or not self._has_room:
            return False
        if starts and not self.scanner.is_job_due:
            return news  # it was awake for a rate, up to 50 times a second
        return news or not self._hungry

    def _scan(self) -> bool:
        """Scan the lanes; True if there is something to claim."""
        due = self.scanner.scan(busy=self._hungry)
        self.lane_selection.forget_limits_of_no_jobs()
        self.lane_selection.may_have_left_jobs = False
        return any(
            self.lane_selection.runs(lane, e) for lane in due for e in self.executors
        )

    @property
    def _has_room(self) -> bool:
        return any(executor.free for executor in self.executors)

    def _wait(self, taken: int) -> float:
        if self._bursts.is_fast:
            self._listening.put(False)
        if self._hungry:
            return self._hungry_wait()
        if taken:
            self._poll_soon()
            if self._bursts.is_fast and self._gets_notifications():
                self._news = True
                return POLL
        elif (
            self._gets_notifications()
            and not self._listening.is_out
            and self._listening.put(True)
        ):
            return 0.0  # check again: nobody notified us until now
        unheard = (
            math.inf
            if self._gets_notifications() and self._listening.is_out
            else LONGEST_UNHEARD
        )
        longest = min(self._poll_in, unheard, self.lane_selection.resting.seconds)
        if self.lane_selection.limited_until:
            longest = min(longest, LIMIT_RETRY)
        return self._idle_backoff.next(min(longest, self.scanner.longest_wait))

    @property
    def _poll_in(self) -> float:
        """Seconds until it polls, should no notification arrive."""
        if self._host_news is None:
            return conf.poll_interval
        return self._host_news.seconds_until_turn(conf.poll_interval)

    def _poll_soon(self) -> None:
        """Poll often at first when there is nothing more, unless we were told of it."""
        if not (self._gets_notifications() and self._listening.is_known):
            self._idle_backoff.reset()

    def _hungry_wait(self) -> float:
        """There is more to claim; an executor that has room for it wakes us."""
        self._poll_soon()
        since = self._full_since
        if since is not None and time.monotonic() - since > BUSY_AFTER:
            self._listening.put(False)
        if any(executor.wants_more for executor in self._full):
            return 0.0  # it said so before we were hungry
        if any(executor.buffered for executor in self.executors):
            return NUDGE_EVERY
        if self._has_room:
            return max(self.scanner.pause, self.scanner.next_at - time.monotonic())
        return conf.poll_interval


def _room_of(executors: Iterable[Executor]) -> int:
    """What is run there."""
    room = 0
    for executor in executors:
        room |= ASYNC_ROOM if executor.is_async else SYNC_ROOM
    return room
