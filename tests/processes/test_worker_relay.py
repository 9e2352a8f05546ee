"""One listener for the workers of a host: no job waits while one of them is idle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from random import Random

import pytest

from django_jobqueue.processes import worker_relay
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.wakeups import NewsPipe, WakeupPipes
from django_jobqueue.processes.worker_relay import (
    ASYNC_ROOM,
    CHECKS,
    CLAIMS_WITHIN,
    MORE,
    MOST_TURNS,
    NO_ROOM,
    REACTS_WITHIN,
    ROOM,
    SYNC_ROOM,
    WAKE,
    WorkerNews,
    WorkerRelay,
)
from tests.support.selection import some_slow
from tests.workers.stopped_clock import StoppedClock

WORKERS = 4
SEEDS = 200


class Host:
    """A table with workers, whose dispatchers are played by a test."""

    def __init__(self, clock: StoppedClock, workers: int = WORKERS) -> None:
        self.clock = clock
        self.pipes = WakeupPipes.with_workers(workers)
        self.table = ProcessTable(workers, self.pipes)
        self.relay = WorkerRelay(self.table, self.pipes)
        self.news = [WorkerNews(self.table, n, self.pipes) for n in range(workers)]
        for number in range(workers):
            self.table.write(number, pid=1, worker=10 + number)

    def ready(self, *readiness: int) -> None:
        for news, each in zip(self.news, readiness, strict=True):
            news.set_readiness(each)

    def woken(self) -> list[int]:
        """The workers with a text that they have not read, which they read now."""
        return [n for n, news in enumerate(self.news) if news.wait(0)]

    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds
        self.relay.proceed()

    def hear_workers(self) -> None:
        self.relay.hear(self.relay.pipe.wait(0))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StoppedClock:
    clock = StoppedClock()
    monkeypatch.setattr(worker_relay.time, "monotonic", clock)
    return clock


@pytest.fixture
def host(clock: StoppedClock) -> Iterator[Host]:
    host = Host(clock)
    yield host
    host.pipes.close()


def test_of_the_idle_workers_one_is_woken_the_one_that_looked_last(host: Host) -> None:
    host.ready(ROOM, ROOM, 0, ASYNC_ROOM)
    host.table.write(1, answered=1)
    host.relay.jobs_arrived()
    assert host.woken() == [1]


def test_a_partly_busy_worker_is_woken_if_nobody_is_idle(host: Host) -> None:
    host.ready(0, 0, 0, ASYNC_ROOM)
    host.relay.jobs_arrived()
    assert host.woken() == [3]


def test_nobody_is_woken_while_somebody_looks_anyway(host: Host) -> None:
    host.ready(ROOM, CHECKS | ROOM, ROOM, ROOM)
    host.relay.jobs_arrived()
    assert host.woken() == []
    host.news[1].answer(host.table.jobs_heard)
    host.pass_time(REACTS_WITHIN)
    assert host.woken() == []
    assert host.relay.seconds_until_due == float("inf")


def test_a_worker_that_has_not_begun_is_not_woken_twice(host: Host) -> None:
    host.ready(ROOM, ROOM, ROOM, ROOM)
    host.relay.jobs_arrived()
    host.relay.jobs_arrived()
    assert host.woken() == [0]


def test_who_has_answered_is_asked_again_if_others_are_full(host: Host) -> None:
    """The listener has not yet read the answer; the other one has room for async jobs
    alone."""
    host.ready(ROOM, ASYNC_ROOM, 0, 0)
    host.relay.jobs_arrived()
    assert host.woken() == [0]
    host.news[0].answer(host.table.jobs_heard)
    host.ready(ROOM, ASYNC_ROOM | CHECKS, 0, 0)
    host.relay.jobs_arrived()
    assert host.woken() == []
    host.news[1].pass_on(NO_ROOM, SYNC_ROOM)
    host.hear_workers()
    assert host.woken() == [0]


def test_who_does_not_answer_is_passed_over_until_it_does(host: Host) -> None:
    """It is stopped, dead, or a handler of it holds the interpreter's lock."""
    host.ready(ROOM, ROOM, ROOM, ROOM)
    host.table.write(0, answered=1)
    host.relay.jobs_arrived()
    host.woken()
    host.pass_time(REACTS_WITHIN)
    assert host.woken() == [1]
    host.news[1].answer(host.table.jobs_heard)
    host.relay.jobs_arrived()
    assert host.woken() == [1]
    host.ready(ROOM, 0, 0, 0)
    host.news[0].answer(host.table.jobs_heard)
    host.relay.jobs_arrived()
    assert host.woken() == [0]


def test_a_worker_that_woke_up_has_time_for_its_claim(host: Host) -> None:
    host.ready(ROOM, ROOM, 0, 0)
    host.relay.jobs_arrived()
    host.ready(CHECKS | ROOM, ROOM, 0, 0)
    assert host.woken() == [0]
    host.pass_time(REACTS_WITHIN)
    assert host.woken() == []
    host.pass_time(CLAIMS_WITHIN)
    assert host.woken() == [1]


def test_full_workers_do_not_wake_each_other_again_and_again(host: Host) -> None:
    host.ready(*[ASYNC_ROOM] * WORKERS)
    host.relay.jobs_arrived()
    woken = []
    for _ in range(3 * WORKERS):
        for number in host.woken():
            woken.append(number)
            host.news[number].answer(host.table.jobs_heard)
            host.news[number].pass_on(NO_ROOM, ASYNC_ROOM)
        host.hear_workers()
    assert sorted(woken) == [*range(WORKERS)]


def test_jobs_without_room_are_passed_on_to_other_hosts_once(host: Host) -> None:
    host.ready(0, 0, 0, 0)
    host.relay.jobs_arrived()
    assert host.relay.untold == set()  # they know
    host.relay.job_arrived("mail")
    assert host.relay.untold == {"mail"}
    host.relay.untold.clear()
    host.pass_time(CLAIMS_WITHIN)
    assert host.relay.untold == set()


def test_a_worker_that_finds_room_for_all_has_nobody_told(host: Host) -> None:
    host.ready(ROOM, 0, 0, 0)
    host.relay.job_arrived("mail")
    assert host.woken() == [0]
    host.news[0].answer(host.table.jobs_heard)
    host.pass_time(REACTS_WITHIN)
    host.news[0].pass_on(MORE, ROOM)  # of what came later, which others know of
    host.hear_workers()
    assert host.relay.untold == set()


def test_other_news_reaches_whom_it_concerns(host: Host) -> None:
    host.table.write(2, pid=0)
    host.relay.pass_to_all("t:")
    host.relay.pass_to("13", "w:13")
    assert [news.wait(0) for news in host.news] == [["t:"], ["t:"], [], ["t:", "w:13"]]


def test_when_nobody_listens_any_more_all_are_woken_to_poll(host: Host) -> None:
    host.table.listener_hears = True
    host.table.listener_is_gone()
    assert not any(news.hears for news in host.news)
    assert [news.wait(0) for news in host.news] == [[WAKE]] * WORKERS


def test_a_pipe_passes_texts_on_as_they_are_and_drops_them_when_it_is_full() -> None:
    pipe = NewsPipe()
    assert pipe.send("c:a\nb é")
    pipe.send()
    assert pipe.wait(0) == ["c:a\nb é", ""]
    while pipe.send("x" * 100):
        pass
    assert set(pipe.wait(0)) == {"x" * 100}
    pipe.close()


class PlayedWorker:
    """Takes the steps of a dispatcher, in its order, one at a time."""

    def __init__(
        self, host: Host, number: int, queue: list[int], slots: int, has_async: bool
    ) -> None:
        self.has_async = has_async  # room for async jobs, of which there are none
        self.news = host.news[number]
        self.queue = queue
        self.slots = slots
        self.running = 0
        self.is_alive = True
        self.is_waiting = False

    @property
    def room(self) -> int:
        sync_room = SYNC_ROOM if self.running < self.slots else 0
        return sync_room | (ASYNC_ROOM if self.has_async else 0)

    def steps(self) -> Iterator[None]:
        """A generator that stands still while the worker waits for a text."""
        heard, was_woken = 0, True
        while True:
            jobs_heard, can_claim = self.news.jobs_heard, bool(self.room)
            was_woken |= jobs_heard != heard
            yield
            taken = min(self.slots - self.running, len(self.queue))
            del self.queue[:taken]
            self.running += taken
            is_hungry = self.running == self.slots
            yield
            if is_hungry and (taken or was_woken):
                self.news.pass_on(MORE if taken else NO_ROOM, SYNC_ROOM)
            was_woken = False
            yield
            if can_claim:
                heard = jobs_heard
                self.news.answer(heard)
            yield
            room = self.room
            self.news.set_readiness(room)
            yield
            if not (room and self.news.jobs_heard != heard):
                self.is_waiting = True
                while not was_woken and not (is_hungry and self.room & SYNC_ROOM):
                    was_woken = bool(self.news.wait(0))
                    yield
                self.is_waiting = False
            self.news.set_readiness(room | CHECKS if room else 0)
            yield


@pytest.mark.dear
@pytest.mark.parametrize(
    "seeds",
    some_slow(
        [range(n, n + SEEDS) for n in range(0, 5 * SEEDS, SEEDS)], [range(SEEDS)]
    ),
    ids=str,
)
def test_no_job_waits_while_a_worker_is_idle(clock: StoppedClock, seeds: range) -> None:
    """Enqueues, claims, ends of jobs, stops and deaths in any order."""
    for seed in seeds:
        play(clock, seed)


def settle(
    host: Host, workers: list[PlayedWorker], played: list[Iterator[None]]
) -> None:
    """Nothing new happens, but time passes."""
    for _ in range(40 * WORKERS):
        for number, worker in enumerate(workers):
            if worker.is_alive:
                next(played[number])
        host.hear_workers()
        host.pass_time(CLAIMS_WITHIN / 20)


def play(clock: StoppedClock, seed: int) -> None:
    draw = Random(seed)
    host, queue = Host(clock), []
    others_are_told = True
    slots = draw.choice([1, 2, 4])
    has_async = draw.random() < 0.5
    workers = [PlayedWorker(host, n, queue, slots, has_async) for n in range(WORKERS)]
    played = [worker.steps() for worker in workers]
    for _ in range(400):
        number, step = draw.randrange(WORKERS), draw.random()
        worker = workers[number]
        if step < 0.05:
            queue.extend(range(draw.choice([1, 1, 1, 3, 9])))
            if others_are_told := draw.random() < 0.5:
                host.relay.jobs_arrived()
            else:
                host.relay.job_arrived("mail")
        elif step < 0.1:
            host.hear_workers()
        elif step < 0.12:
            host.pass_time(draw.choice([REACTS_WITHIN, CLAIMS_WITHIN]))
        elif step < 0.14 and number:  # one stays alive
            worker.is_alive = not worker.is_alive
        elif worker.is_alive and step < 0.22:
            worker.running = max(0, worker.running - 1)
        elif worker.is_alive:
            next(played[number])
        if host.relay.untold:
            host.relay.untold.clear()
            others_are_told = True
    settle(host, workers, played)
    others_are_told = others_are_told or host.relay.untold == {"mail"}
    idle_ones = [w for w in workers if w.is_alive and w.running < slots]
    assert not (queue and idle_ones), seed
    assert not queue or others_are_told, seed
    assert all(worker.is_waiting for worker in workers if worker.is_alive), seed
    host.pipes.close()


def test_workers_beyond_the_pipes_listen_themselves_and_disturb_no_other() -> None:
    """They are of a host that was scaled to more processes than it started with."""
    pipes = WakeupPipes.with_workers(2)
    table = ProcessTable(4, pipes)
    for number in range(4):
        table.write(number, pid=1, worker=10 + number)
    news = [table.news_of(number) for number in range(4)]
    assert [each is None for each in news] == [False, False, True, True]
    relay = table.relay()
    for each in news[:2]:
        each.set_readiness(ROOM)
    relay.jobs_arrived()
    relay.pass_to_all("x")
    for worker in ("11", "13"):
        relay.pass_to(worker, "y")
    heard = [each.wait(0) for each in news if each is not None]
    assert sorted(heard) == [["!", "x"], ["x", "y"]]
    table.listener_is_gone()
    table.keep_pipe(3)  # closes those of the others
    with pytest.raises(OSError, match="Bad file descriptor"):
        pipes.workers[0].send("x")


def test_one_of_the_idle_workers_polls_in_each_interval(host: Host) -> None:
    """Should no notification ever arrive."""
    for idle in range(1, WORKERS + 1):
        host.ready(*[ROOM] * idle, *[0] * (WORKERS - idle))
        begin = host.clock.now
        due = {n: begin + host.news[n].seconds_until_turn(5.0) for n in range(idle)}
        polls = [begin]
        for _ in range(5 * idle):
            number = min(due, key=due.__getitem__)
            host.clock.now = due[number]
            polls.append(host.clock.now)
            due[number] += host.news[number].seconds_until_turn(5.0)
        apart = [after - before for before, after in pairwise(polls)]
        assert max(apart[1:]) == pytest.approx(5.0), idle
        assert apart[0] <= 5.0 + 5.0 / 20


def test_of_very_many_idle_workers_some_poll_together(clock: StoppedClock) -> None:
    host = Host(clock, 3 * MOST_TURNS)
    host.ready(*[ROOM] * 3 * MOST_TURNS)
    waits = Counter(round(news.seconds_until_turn(5.0)) for news in host.news)
    assert [*waits.values()] == [3] * MOST_TURNS
    host.pipes.close()
