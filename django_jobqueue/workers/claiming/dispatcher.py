"""Keeps the slots busy: claims, scans lanes, and waits."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.processes.loop import FOREVER, Loop
from django_jobqueue.processes.process_table import LeaseOverdue
from django_jobqueue.processes.wakeups import ListeningFlag
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
from django_jobqueue.workers.claiming.claimer import Claimer
from django_jobqueue.workers.claiming.lane_scanner import LaneScanner
from django_jobqueue.workers.claiming.next_step import (
    POLL,
    Because,
    Do,
    Known,
    next_step,
    next_wait,
)
from django_jobqueue.workers.claiming.policies import (
    CancellationPoll,
    Policies,
    PolicyReader,
)
from django_jobqueue.workers.executors.base import STALE, Executor

logger = logging.getLogger("django_jobqueue.worker")

UNLEASED: Final = 0.1  # seconds between looks whether the lease was renewed
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
        self._known = Known()
        self._full: list[Executor] = []  # those that had no room for what there is

    # What others tell it, from any thread.

    def jobs_arrived(self, *, behind: bool = False) -> None:
        """There are new jobs; ``behind``: perhaps where a claim has passed already."""
        self._known.jobs_arrived = True
        if behind:
            self.scanner.want_full_scan()
        self.wake()

    def policies_changed(self) -> None:
        """Operators overrode, paused or resumed something."""
        self._known.policies_changed = True
        self.jobs_arrived(behind=True)

    def slot_free(self) -> None:
        """An executor could do with more."""
        if self._known.may_have_more:
            self.wake()

    def ended(self, attempts: Sequence[Attempt]) -> None:
        """These are finished, so that a type at its limit may have room."""
        self._finished += 1
        self.slot_free()  # perhaps too many outcomes waited to be written
        selection = self.lane_selection
        if selection.limited_until and selection.finished(attempts):
            self._known.may_have_more = True
            self.wake()

    def stop_claiming(self) -> None:
        """Claim nothing more."""
        self._known.is_open = False
        self.wake()

    def resume_claiming(self) -> None:
        """Claim again."""
        self._known.is_open = True
        self.jobs_arrived(behind=True)

    @property
    def is_idle(self) -> bool:
        """True if the last round found nothing and nothing ended since it began."""
        return self._idle_at == self._finished

    # The work.

    def tick(self) -> float:
        """Claim what there are slots for, while this worker has a lease."""
        try:
            return self._work()
        except LeaseOverdue:
            self._known.jobs_arrived = True
            self.lane_selection.limited_until.clear()
            self.scanner.want_full_scan()
            return UNLEASED

    def _work(self) -> float:
        self._known.may_scan = not self.scanner.pause
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
        else:
            self._sleep_listening(news, seconds)
        if self._woken.is_set() or self._known.jobs_arrived:
            self._known.was_woken()

    def _sleep_listening(self, news: WorkerNews, seconds: float) -> None:
        readiness = self._readiness(seconds)
        news.set_readiness(readiness)  # first: see wakeups.py
        may_ask = readiness != 0 and self._known.may_scan
        missed = may_ask and news.jobs_heard != self._heard
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
                self._known.jobs_arrived = True
            elif (heard := parse(text)) is not None:
                self._pass_on(*heard)

    def _readiness(self, seconds: float) -> int:
        """The reasons to wake it while it waits this long."""
        if not self._known.is_open:
            return 0
        room = _room_of(executor for executor in self.executors if executor.free)
        return room | CHECKS if room and seconds <= POLL else room

    def _answering_round(self, news: WorkerNews) -> float:
        """A round whose result the host's listener waits for."""
        known, heard, behind = self._known, news.jobs_heard, news.behind_heard
        if heard != self._heard:
            known.jobs_arrived = True
        if behind != self._behind_heard:
            self._behind_heard = behind
            self.scanner.want_full_scan()
        was_woken = known.jobs_arrived and known.may_scan
        can_claim = known.is_open and self._has_room and known.may_scan
        wait = min(self._round(), self.claimer.unconfirmed.seconds_until_due)
        hands_on = known.taken or was_woken
        if self._full and hands_on and self.lane_selection.others_could_claim:
            news.pass_on(MORE if known.taken else NO_ROOM, _room_of(self._full))
        if can_claim:  # last: with all answers, the listener takes the jobs for claimed
            self._heard = heard
            news.answer(heard)
        return wait

    def _round(self) -> float:
        finished, self._idle_at = self._finished, None
        known = self._known
        known.begin(time.monotonic())
        self.rounds += 1
        self._catch_up()
        self._see(known)
        while (step := next_step(known, time.monotonic())) is not None:
            self._do(step)
            self._see(known)
        self._see_reasons_to_wait(known)
        wait = next_wait(known, time.monotonic())
        known.end(wait, time.monotonic())
        if wait.because is Because.STOPPED:
            return self._stopped_wait()
        waits = known.may_have_more or self.lane_selection.waits_for_start
        if not known.taken and not waits and known.may_scan:
            self._idle_at = finished
        return wait.seconds

    def _stopped_wait(self) -> float:
        """Seconds to wait while nothing may be claimed. What runs can be cancelled."""
        now = time.monotonic()
        return min(FOREVER, self._cancellation_poll.poll(self._connection, now))

    def _see(self, known: Known) -> None:
        """Bring what is known up to date."""
        if known.is_open and known.may_have_more and not known.has_claimed:
            return  # a claim is next, whatever else there is
        selection, scanner = self.lane_selection, self.scanner
        listening = self._listening
        known.has_room = self._has_room
        # Greater: the last round may have ended with a scan at this very moment.
        known.has_scanned |= scanner.scanned_at > known.began
        known.scan_at = scanner.due_at
        known.may_have_left_jobs = selection.may_have_left_jobs
        known.next_start_in = selection.next_start_in
        known.job_due_at, known.pause = scanner.job_due_at, scanner.pause
        known.hears = self._gets_notifications()
        known.is_listening, known.listening_since = listening.is_set, listening.since
        known.listen_at = listening.again_at

    def _see_reasons_to_wait(self, known: Known) -> None:
        """The same of what only a wait is for."""
        selection = self.lane_selection
        if known.may_have_more:
            known.has_room_again = any(executor.wants_more for executor in self._full)
            known.has_buffered = any(executor.buffered for executor in self.executors)
            known.poll_in = conf.poll_interval
        else:
            known.full_scan_wanted = self.scanner.full_scans.is_wanted
            known.is_limited = bool(selection.limited_until)
            known.retry_in = selection.resting.seconds
            known.poll_in = self._poll_in

    def _do(self, step: Do) -> None:
        """Ask the database."""
        match step:
            case Do.READ_POLICIES:
                self._read_policies()
            case Do.CLAIM:
                self._claim()
            case Do.SCAN:
                self._scan()
            case Do.LISTEN:
                self._known.has_listened = self._listening.set(True)
            case Do.STOP_LISTENING:
                self._listening.set(False)

    def close(self) -> None:
        """Give back what was not started; let the connection go."""
        self._known.is_open = False
        try:
            self._catch_up()
        except StoreUnavailable:
            logger.warning("Claimed jobs that had not started could not be given back")
        self._connection.close()

    def _catch_up(self) -> None:
        """Bring policies, cancels and unconfirmed claims up to date before a claim."""
        self.claimer.release_unconfirmed()
        now = time.monotonic()
        for executor in self.executors:
            if not self._known.is_open or executor.oldest_wait(now) > STALE:
                self.claimer.give_back(executor.take_back())
            if executor.buffered:
                executor.nudge()
        if self._known.is_open:
            self._cancellation_poll.poll(self._connection, now)

    def _read_policies(self) -> None:
        known = self._known
        if not known.policies_due_at:
            self.claimer.warm_up()
        known.policies_changed = False
        self._reader.read()
        self.lane_selection.policies_changed()
        pause = RELOAD_EVERY if self._gets_notifications() else RELOAD_UNHEARD
        known.policies_due_at = time.monotonic() + pause

    def _claim(self) -> None:
        """Claim for each executor. Where more than one statement could find some, a
        probe says first which lanes have jobs. While many lanes have more, what was
        found of late is enough."""
        known, selection = self._known, self.lane_selection
        has_scanned, is_for_news = (
            known.has_due_lanes,
            known.jobs_arrived and known.may_scan,
        )
        known.has_claimed, known.has_due_lanes = True, False
        known.has_scanned_since = False
        if is_for_news and not has_scanned:
            known.jobs_arrived, known.is_for_news = False, True
            selection.jobs_arrived()
        known.is_for_rate |= selection.starts_are_permitted()
        are_many = selection.lanes.are_many
        goes_on = are_many and not (is_for_news or has_scanned)
        began, had_more, known.may_have_more = (
            time.monotonic(),
            known.may_have_more,
            False,
        )
        self._full = []
        wanting = [executor for executor in self.executors if executor.wants_more]
        probe = selection.takes_several_statements(wanting)
        if probe and not (goes_on or has_scanned):
            self.scanner.probe()
        for executor in self.executors:
            got, more = self.claimer.fill(executor, due=probe or are_many)
            known.taken += got
            self._full += [executor] * more
        known.may_have_more = known.may_have_more or bool(self._full)
        known.full_since = (known.full_since or began) if known.may_have_more else None
        known.is_out_of_lanes = goes_on and had_more and not known.may_have_more

    def _scan(self) -> None:
        """Scan the lanes."""
        self._known.has_scanned = self._known.has_scanned_since = True
        due = self.scanner.scan(busy=self._known.may_have_more)
        self.lane_selection.forget_limits_of_no_jobs()
        self.lane_selection.may_have_left_jobs = False
        self._known.has_due_lanes = any(
            self.lane_selection.runs(lane, e) for lane in due for e in self.executors
        )

    @property
    def _has_room(self) -> bool:
        return any(executor.free for executor in self.executors)

    @property
    def _poll_in(self) -> float:
        """Seconds until it polls, should no notification arrive."""
        if self._host_news is None:
            return conf.poll_interval
        return self._host_news.seconds_until_turn(conf.poll_interval)


def _room_of(executors: Iterable[Executor]) -> int:
    """The jobs that run there."""
    room = 0
    for executor in executors:
        room |= ASYNC_ROOM if executor.is_async else SYNC_ROOM
    return room
