"""Operators' requests to a whole host: another plan, a drain, a restart, a stop."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, Final

from django_jobqueue.domain.host_plans import (
    BOUNDS,
    PLAN_KEYS,
    changes_problem,
    plan_changes,
    plan_problem,
    request_words,
)
from django_jobqueue.domain.log_events import Event
from django_jobqueue.domain.states import HostState
from django_jobqueue.host.code_trial import CodeTrial, Program
from django_jobqueue.host.control import HostControl, HostedWorker
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig

logger = logging.getLogger("django_jobqueue.supervisor")

# Carries the number of a restart to the program that takes the place of this one.
RESTARTED: Final = "JOBQUEUE_RESTARTED"
PARTS: Final = {"plan": PLAN_KEYS, "restart": ("restart",)}
EMBEDDED: Final = "This worker is embedded in another program; restart or scale that."


def capacity(config: WorkerConfig, processes: int) -> dict[str, int]:
    """The bounds of the plans of a host that starts with this one."""
    given = {
        "processes": processes,
        "threads": config.threads,
        "async_slots": config.async_slots,
    }
    return {name: max(most, given[name]) for name, most in BOUNDS.items()}


class HostOrders:
    """Takes them from the process table, has host control carry them out, and reports
    what came of them. A request lasts until this host ends: a restart keeps it.

    Without a ``program`` the code cannot be loaded again; ``no_program`` says why.
    """

    def __init__(
        self,
        control: HostControl,
        process_table: ProcessTable,
        *,
        bounds: dict[str, int],
        program: Program | None = None,
        no_program: str = EMBEDDED,
        on_plan: Callable[[WorkerConfig], None] | None = None,
        on_report: Callable[[], None] | None = None,
        environment: MutableMapping[str, str] = os.environ,
    ) -> None:
        self.program = program
        self.is_restarting = False
        self._control = control
        self._process_table = process_table
        self._bounds = bounds
        self._no_program = no_program
        self._on_plan = on_plan
        self._on_report = on_report or process_table.call_maintenance
        self._restarted = _number(environment.pop(RESTARTED, "0"))
        self._read = 0  # the number of the last text
        self._asked: dict[str, Any] = {}
        self._applied: dict[str, Any] = {}
        self._errors: dict[str, str] = {}  # of the plan, and of the restart
        self._trial: CodeTrial | None = None
        self._reported: dict[str, Any] = {}

    @property
    def trial_pid(self) -> int | None:
        """The process that tries new code; None if there is none."""
        return None if self._trial is None else self._trial.pid

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which the program is started again."""
        return {RESTARTED: str(self._restarted)}

    def proceed(self, workers: Sequence[HostedWorker]) -> None:
        """Take new requests, go on with those under way, and report."""
        version = self._process_table.orders.version()
        if version is not None and version.number != self._read:
            self._read = version.number
            self._take(version.value)
        if self._trial is not None:
            self._follow(self._trial)
        self._process_table.wants_no_worker = self._control.wants_no_worker
        self.report(workers)

    def end(self, workers: Sequence[HostedWorker] = ()) -> None:
        """The host ends. Report that first, then let maintenance end."""
        if self._trial is not None:
            self._trial.close()
            self._trial = None
        self.report(workers)

    def report(self, workers: Sequence[HostedWorker]) -> None:
        """Write how this host is, if that has changed."""
        if self._trial is None and self._control.is_at_plan(workers):
            refused = {key for part in self._errors for key in PARTS[part]}
            self._applied = {k: v for k, v in self._asked.items() if k not in refused}
        report = {
            **self._control.plan.to_json(),
            "state": self._state().value,
            "applied": self._applied,
            "error": " ".join(dict.fromkeys(self._errors.values())),
        }
        if report != self._reported:
            self._reported = report
            self._process_table.report.write(report)
            self._on_report()

    def _state(self) -> HostState:
        control = self._control
        if control.stopping:
            is_restarting = self.is_restarting
            return HostState.RESTARTING if is_restarting else HostState.STOPPING
        if control.is_draining:
            return HostState.DRAINING
        if control.scaling.is_parked:
            return HostState.PARKED
        may_work = self._process_table.may_work(lease_time())
        return HostState.RUNNING if may_work else HostState.STANDBY

    # One request after another.

    def _take(self, asked: dict[str, Any]) -> None:
        before, self._asked = self._asked, asked
        if asked == before:
            return
        extra = {"event": Event.HOST_ASKED, "asked": asked}
        new = {key: asked[key] for key in asked if asked[key] != before.get(key)}
        words = ", ".join(request_words(new))
        logger.info("Operators' request to this host: %s", words, extra=extra)
        self._control.is_draining = asked.get("draining") is True
        if plan_changes(asked) != plan_changes(before):
            self._scale(asked)
        if _number(asked.get("restart")) > self._restarted:
            self._try_code(_number(asked.get("restart")))
        if _number(asked.get("stop")) > _number(before.get("stop")):
            self._stop()
        self._control.activity()

    def _scale(self, asked: dict[str, Any]) -> None:
        self._errors.pop("plan", None)
        changes, control = plan_changes(asked), self._control
        problem = EMBEDDED if self._on_plan is None else None
        problem = problem or changes_problem(changes, self._bounds)
        problem = problem or plan_problem(control.plan.changed(changes))
        if problem:
            self._refuse("plan", problem)
            return
        plan = control.plan.changed(changes)
        if plan != control.plan and self._on_plan is not None:
            control.begin_to_scale(plan)
            self._on_plan(control.config)

    def _try_code(self, number: int) -> None:
        self._errors.pop("restart", None)
        self._restarted = number
        if self.program is None:
            self._refuse("restart", self._no_program)
            return
        if self._trial is not None:
            self._trial.close()
        try:
            self._trial = CodeTrial(self.program)
        except OSError as error:
            self._refuse("restart", f"The new code cannot be checked: {error}")

    def _follow(self, trial: CodeTrial) -> None:
        """Stop to start again if the code does start."""
        problem = trial.problem()
        if problem is None:
            return
        trial.close()
        self._trial = None
        if problem:
            self._refuse("restart", problem)
        elif not self._control.stopping:
            self.is_restarting = True
            self._end_workers("The new code starts: restarting")

    def _stop(self) -> None:
        self.is_restarting = False
        self._end_workers("An operator stops this host")

    def _end_workers(self, why: str) -> None:
        logger.info(
            "%s. Running jobs have %g s to finish.",
            why,
            self._control.grace,
            extra={"event": Event.HOST_STOPPING, "signal": ""},
        )
        self._control.stop_within(self._control.grace)

    def _refuse(self, part: str, problem: str) -> None:
        self._errors[part] = problem
        extra = {"event": Event.HOST_REFUSED, "problem": problem}
        logger.error("This host refuses the request: %s", problem, extra=extra)


def _number(value: Any) -> int:
    """The number of a request; 0 for what is none."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0
