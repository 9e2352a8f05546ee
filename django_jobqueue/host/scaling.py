"""Brings a host to another plan: its workers are replaced one after the other, each by
a successor that works already, so that there are never fewer slots than the smaller of
the two plans has.
"""

from __future__ import annotations

from django_jobqueue.domain.host_plans import HostPlan
from django_jobqueue.processes.worker_config import WorkerConfig


class Scaling:
    """The plan that a host is on the way to.

    A plan with other slots or queues is a new generation of workers. While those of the
    generation before are replaced, there may be more processes than the plan has.
    """

    def __init__(self, config: WorkerConfig, processes: int) -> None:
        self.config = config
        self.generation = 0
        self.plan = plan_of(config, processes)
        self.is_under_way = False
        self.is_parked = False  # operators want no process here, and the host to stay

    def begin(self, plan: HostPlan, processes: int) -> int:
        """Begin to go to this plan from so many processes; returns how many to have
        until all of them are of its generation."""
        before, self.plan = self.plan, plan
        self.is_under_way = True
        self.is_parked = plan.processes == 0
        if plan_of(self.config, plan.processes) != plan:
            self.config = configured(self.config, plan)
            self.generation += 1
            return processes_meanwhile(before, processes, plan)
        return plan.processes

    def one_less(self) -> None:
        """An operator has stopped one worker."""
        processes = max(0, self.plan.processes - 1)
        self.plan = self.plan._replace(processes=processes)


def plan_of(config: WorkerConfig, processes: int) -> HostPlan:
    """The plan of a host with so many workers of this kind."""
    return HostPlan(
        processes=processes,
        threads=config.threads,
        async_slots=config.async_slots,
        queues=config.queues,
    )


def configured(config: WorkerConfig, plan: HostPlan) -> WorkerConfig:
    """The configuration of a worker under this plan."""
    return config._replace(
        queues=plan.queues,
        threads=plan.threads,
        async_slots=plan.async_slots,
    )


def processes_meanwhile(before: HostPlan, processes: int, plan: HostPlan) -> int:
    """How many processes have enough slots for the new plan, be they of the old plan or
    of the new one: no more than there are, or will be."""
    if not plan.processes:
        return 0
    needed = plan.processes
    for old, new in (
        (before.threads, plan.threads),
        (before.async_slots, plan.async_slots),
    ):
        if old:
            needed = max(needed, -(-plan.processes * new // old))
    return max(plan.processes, min(needed, processes))
