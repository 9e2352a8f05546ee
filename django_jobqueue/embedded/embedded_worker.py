"""The public worker that runs in threads of this process: start, stop, wait."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Never, Self

from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from django_jobqueue.conf import Conf, conf
from django_jobqueue.domain.databases import vendor_problem
from django_jobqueue.domain.policy import queue_problem
from django_jobqueue.embedded import stop_at_exit
from django_jobqueue.embedded.embedded_supervisor import EmbeddedSupervisor
from django_jobqueue.embedded.threaded_worker import HostedThreads
from django_jobqueue.host.startup_log import log_start
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.text.suggestions import no_argument

logger = logging.getLogger("django_jobqueue.worker")

LAST_STEPS: Final = 8.0  # seconds for what comes after the grace, at the very most
POLL: Final = 0.01  # seconds
SHOWN: Final = 5  # jobs in an error

OPTIONS: Final = ("queues", "threads", "async_slots", "grace")
_SLOTS: Final = "Write threads=… for sync handlers, async_slots=… for async ones"
_PROCESSES: Final = (
    "It runs in threads of this process; manage.py runworkers starts processes"
)
# Options of other job queues, and what to write instead.
OTHER_OPTIONS: Final[Mapping[str, str]] = {
    "concurrency": _SLOTS,
    "processes": _PROCESSES,
    "queue": "Write queues=[…]",
    "slots": _SLOTS,
    "timeout": "Write grace=…, the seconds that running jobs have after stop()",
    "workers": _PROCESSES,
}

# A fork's copies of its parent's workers. Garbage collection of them would close
# connections that belong to the parent.
_of_parents: Final[list[EmbeddedSupervisor | None]] = []


class EmbeddedWorker:
    """Claims jobs and runs them in threads of this process, from ``start()`` to
    ``stop()``, or as long as a ``with`` block lasts.

    It forks nothing, and leaves signals, settings and the connections of other threads
    alone. Its methods may be called from any thread but those of its own handlers.
    """

    def __init__(self, config: WorkerConfig, *, grace: float) -> None:
        self._config = config
        self.grace = grace
        self._supervisor: EmbeddedSupervisor | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start, and return at once. A thread waits for the database, however long that
        takes. Does nothing if it is already running.

        Raises ImproperlyConfigured if the database of the jobs is not PostgreSQL, or if
        it has ``AUTOCOMMIT: False``.
        """
        _check(conf.database)
        with self._lock:
            if self.is_running:
                return
            log_start(self._config, None)
            self._supervisor = EmbeddedSupervisor(self._config, grace=self.grace)
            self._supervisor.start()
            stop_at_exit.watch(self)

    def stop(self, timeout: float | None = None) -> None:
        """Claim nothing more; let running jobs end; release the others.

        They have ``timeout`` seconds to end, or the grace period; then their handlers
        are asked to stop. When this returns, all of the worker's own connections are
        closed. Handlers that do not stop even then go on: a thread cannot be killed.
        """
        with self._lock:
            supervisor = self._supervisor
        if supervisor is None:
            return
        supervisor.request_stop(timeout)
        allowed = self.grace if timeout is None else timeout
        if not supervisor.join(allowed + conf.cancel_grace + LAST_STEPS):
            logger.error("The embedded worker does not stop, and is abandoned")
        stop_at_exit.unwatch(self)

    def run(self) -> None:
        """Run until another thread calls ``stop()``, or an operator stops it. An
        exception, such as that of Ctrl-C, stops it too."""
        self.start()
        try:
            while self.is_running:
                time.sleep(0.1)
        finally:
            self.stop()

    def run_until_idle(self, timeout: float | None = None) -> None:
        """Run the jobs that can run now, and those that they enqueue; then stop.

        Raises TimeoutError if it is not done after ``timeout`` seconds; None waits
        forever.
        """
        with self:
            self.wait_idle(timeout)

    @property
    def is_running(self) -> bool:
        """True if it has been started and has not ended."""
        return self._supervisor is not None and not self._supervisor.has_ended

    @property
    def name(self) -> str:
        """Its name in the admin; empty while it does not run."""
        hosted = self._hosted
        return "" if hosted is None else hosted.name

    @property
    def is_idle(self) -> bool:
        """True if it holds no job, and its last claim found none. To be sure that all
        enqueued jobs are done, use ``wait_idle()``."""
        hosted = self._hosted
        return hosted is not None and hosted.worker.is_idle

    def wait_idle(self, timeout: float | None = 10.0) -> None:
        """Wait until there is no job that this worker could run now: the jobs committed
        before this call are done. It does not wait for jobs that are due later, paused,
        or waiting for a retry.

        Raises TimeoutError after ``timeout`` seconds, None waits forever; RuntimeError
        if the worker does not run.
        """
        supervisor = self._supervisor
        deadline = None if timeout is None else time.monotonic() + timeout
        if supervisor is None:
            raise RuntimeError("This worker is not running. Call start() first.")
        idleness = Idleness(supervisor)
        while not idleness.has_come():
            if supervisor.has_ended:
                raise RuntimeError("This worker was stopped while it was waited for.")
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"After {timeout:g} s {idleness.problem}.")
            time.sleep(POLL)

    def ask_to_stop(self) -> None:
        """Begin to stop, and return at once."""
        if self._supervisor is not None:
            self._supervisor.request_stop(None)

    def forget(self) -> None:
        """Forget that it runs: it does so in the parent of this process."""
        self._lock = threading.Lock()
        _of_parents.append(self._supervisor)
        self._supervisor = None

    @property
    def _hosted(self) -> HostedThreads | None:
        return None if self._supervisor is None else self._supervisor.worker

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


class Idleness:
    """Waits for an idle worker: only a round of its dispatcher that began after the
    first question counts."""

    def __init__(self, supervisor: EmbeddedSupervisor) -> None:
        self._supervisor = supervisor
        self._asked: HostedThreads | None = None
        self._asked_at = 0  # rounds of its dispatcher

    def has_come(self) -> bool:
        """True if a round that began since then found nothing to do; starts one if
        not."""
        hosted = self._supervisor.worker
        if hosted is None or len(self._supervisor.workers) > 1:
            return False
        dispatcher = hosted.worker.dispatcher
        if hosted is not self._asked:
            self._asked, self._asked_at = hosted, dispatcher.rounds
            dispatcher.jobs_arrived(behind=True)
            return False
        return dispatcher.rounds != self._asked_at and hosted.worker.finish_drain()

    @property
    def problem(self) -> str:
        """For people: why the worker is not idle."""
        hosted = self._asked
        if hosted is None:
            return (
                "the worker has not started: the database may be away, asleep or not "
                "migrated; the log says which"
            )
        if hosted.is_paused:
            return "the worker is paused by an operator"
        held = sorted(hosted.worker.held, key=lambda attempt: attempt.claimed)
        if not held:
            return "the worker still finds jobs that it could claim"
        shown = [f"{a.job.id} ({a.job.job_type})" for a in held[:SHOWN]]
        more = ", …" if len(held) > SHOWN else ""
        count = "1 job" if len(held) == 1 else f"{len(held)} jobs"
        return f"the worker still has {count}: {', '.join(shown)}{more}"


def worker(
    *,
    queues: Sequence[str] | None = None,
    threads: int | None = None,
    async_slots: int | None = None,
    grace: float | None = None,
    **unknown: Never,
) -> EmbeddedWorker:
    """A worker that runs in threads of this process::

        with django_jobqueue.worker(queues=["mail"]):
            serve_forever()

    Omitted options come from the settings: the ``queues`` to claim from (default: every
    queue), how many sync handlers run at once (``threads``), how many async ones
    (``async_slots``), and the seconds that running jobs have to end after ``stop()``
    (``grace``).

    Raises ValueError for an invalid value, or if no job could run; TypeError for a
    value of a wrong type, and for an unknown option.
    """
    for name in unknown:
        raise TypeError(no_argument("worker()", name, OPTIONS, OTHER_OPTIONS))
    _check_options(queues, threads=threads, async_slots=async_slots, grace=grace)
    queues = conf.queues if queues is None else queues
    threads = conf.threads if threads is None else threads
    async_slots = conf.async_slots if async_slots is None else async_slots
    if threads + async_slots == 0:
        raise ValueError(
            f"With threads={threads} and async_slots={async_slots} nothing can run."
        )
    grace = conf.grace if grace is None else grace
    config = WorkerConfig(
        queues=tuple(queues) if queues else None,
        threads=threads,
        async_slots=async_slots,
    )
    return EmbeddedWorker(config, grace=grace)


def _check_options(queues: Any, **numbers: Any) -> None:
    """Raises TypeError, ValueError for values that the settings of the same names
    reject."""
    if isinstance(queues, str):
        raise TypeError(f"queues must be a list of names: queues=[{queues!r}].")
    names = list(queues) if isinstance(queues, Collection) else queues
    for name, value in {"queues": names, **numbers}.items():
        setting = Conf.settings[name.upper()]
        if value is not None and (problem := setting.problem(value)):
            error = ValueError if setting.allows_type(value) else TypeError
            raise error(f"{name} {problem}.")
    for queue in names or ():
        if problem := queue_problem(queue):
            raise ValueError(f"queues has an invalid queue name: it {problem}")


def _check(alias: str) -> None:
    if problem := vendor_problem(alias):
        raise ImproperlyConfigured(
            f"{problem} For tests without it there is JOBQUEUE = "
            '{"MODE": "immediate"}.'
        )
    if not connections.settings[alias].get("AUTOCOMMIT", True):
        raise ImproperlyConfigured(
            f"A worker needs DATABASES[{alias!r}] without 'AUTOCOMMIT': False: nothing "
            "would commit its handlers' writes."
        )
