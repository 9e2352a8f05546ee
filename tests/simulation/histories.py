"""What happens in a history: jobs come, operators pause and drain, processes die."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django_jobqueue.store.queue.limits_in_force import Limits
from tests.simulation.hosts import POLL_INTERVAL, Host, Patches
from tests.simulation.world import FAR, LANES, LIMITS, Row, World

WORKERS = 3  # at most
BOUND = 3.0  # seconds that a slot may be free beside a job that may run
BOUND_OF_WORD = 0.9  # the same where somebody says so, and nobody need look
POLLED = 5 * POLL_INTERVAL  # seconds until a poll finds what only the dead knew
JOBS = 8  # at most; a few more keys than a claim looks at


class History:
    """Who acts in it."""

    # Half of them have nets: processes die and statements take long, operators change
    # their minds, and what nobody says is found by scans. In the others whoever has
    # room for a job is told of it.

    leaves_it = False  # those who enqueue without the first lock tell nobody afterwards

    def __init__(self, world: World) -> None:
        self.world = world
        draw, choice = world.draw, world.random.choice
        world.has_nets = draw() < 0.5
        job_type = choice([*LIMITS])
        is_keyed = LIMITS[job_type].keys is not None
        world.bound = BOUND if world.has_nets or is_keyed else BOUND_OF_WORD
        alone = not world.has_nets and LIMITS[job_type] != Limits()
        # Seconds until some jobs are due; in front of others, where keys are walked.
        self._later = 0.1 if world.has_nets else FAR * is_keyed
        job_types = [job_type]
        if world.has_nets:
            job_types += world.random.sample([*LIMITS], choice([0, 1, 2]))
        world.known = [LANES[name] for name in job_types]
        first = 1
        for number in range(1 if alone else choice([1, 1, 2])):
            workers = 1 if alone else choice([1, 2, WORKERS - number])
            world.hosts.append(Host(world, f"host{number}", workers, first))
            first += workers
        left = choice([1, 2, 3, 5, JOBS])
        at = 0.0
        while left:
            count = min(left, choice([1, 1, 1, 2, 4]))
            at += choice([0.0, 0.0, 0.002, 0.03]) * draw()
            ids = range(left - count, left)
            world.spawn(self._enqueue(at, [*ids], choice(job_types)))
            left -= count
        if world.has_nets:
            for steps in (self._pause(choice(job_types)), self._limit(), self._drain()):
                if draw() < 0.2:
                    world.spawn(steps)
            if draw() < 0.1:
                world.spawn(self._die())

    def _enqueue(self, at: float, ids: Sequence[int], job_type: str) -> Iterator[float]:
        """One INSERT that is a transaction by itself, or some in one."""
        world = self.world
        yield at
        rows: list[Row] = []
        for id in ids:
            due_in = self._later if world.draw() < 0.3 else 0.0
            key = world.random.choice("abcdefgh")
            rows.append(world.insert(id, job_type, key, due_in))
            if len(ids) > 1:
                yield world.delay()
        if len(rows) == 1:
            yield from self._alone(rows[0])
            return
        hosts = world.idle_hosts()  # of the trigger
        yield world.delay()
        world.commit(rows)
        if hosts is not None:
            later = any(row.due > world.now for row in rows)
            world.tell(world.told([] if later else hosts, rows[0]))

    def _alone(self, row: Row) -> Iterator[float]:
        world = self.world
        hosts, lane = world.idle_hosts(), row.lane.job_type
        if hosts is not None and row.due > world.now:
            hosts = []
        first = world.lock(f"first {lane}")
        tells = hosts is not None and first.try_it()
        yield world.delay()
        world.commit([row])
        if tells:
            first.is_held = False
        elif hosts is not None and not self.leaves_it:
            yield world.delay()
            second = world.lock(f"second {lane}")
            tells = second.try_it()
            yield world.delay()
            second.is_held = second.is_held and not tells
        if tells:
            assert hosts is not None
            world.tell(world.told(hosts, row))

    def _pause(self, job_type: str) -> Iterator[float]:
        """An operator pauses a job type for a while."""
        world = self.world
        for paused in (True, False):
            yield world.draw() * 0.1
            (world.paused.add if paused else world.paused.discard)(job_type)
            world.tell([(None, "t:")])
            world.check()

    def _limit(self) -> Iterator[float]:
        """And permits more jobs of the limited type, or fewer."""
        world = self.world
        for limit in (2, 1, 2):
            yield world.draw() * 0.05
            world.limit = limit
            world.tell([(None, "t:")])
            world.check()

    def _drain(self) -> Iterator[float]:
        """A worker is to claim nothing for a while."""
        world = self.world
        worker = world.random.choice(world.random.choice(world.hosts).workers)
        yield world.draw() * 0.1
        worker.dispatcher.stop_claiming()
        yield world.draw() * 0.1
        worker.dispatcher.resume_claiming()
        world.check()

    def _die(self) -> Iterator[float]:
        """A process dies, or the machine of a host, but for the last one."""
        world = self.world
        host = world.hosts[-1]
        world.bound = POLLED  # perhaps nobody else knows that a limit has room again
        yield world.draw() * 0.1
        if len(world.hosts) > 1 and world.draw() < 0.5:
            yield from host.die()
        elif len(host.workers) > 1:
            yield from host.lose(host.workers[-1])


def play(seed: int, history: type[History] = History) -> World:
    """One history, to its end; raises ``Wrong``."""
    world = Patches.world = World(seed)
    history(world)
    world.run()
    return world
