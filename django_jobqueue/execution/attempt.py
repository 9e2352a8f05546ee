"""One execution of a job: its state, from the claim to the outcome."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextvars import Token
from functools import cached_property
from typing import Any

from django_jobqueue.conf import conf
from django_jobqueue.domain.arguments import UnknownParameters, from_json
from django_jobqueue.domain.context import Context, running
from django_jobqueue.domain.log_events import Event
from django_jobqueue.domain.registry import Declaration, registry
from django_jobqueue.domain.report import Report
from django_jobqueue.domain.retry_decision import Outcome, StopReason, Verb
from django_jobqueue.exceptions import Cancel, InvalidArguments, JobTimeout
from django_jobqueue.execution.attempt_outcome import (
    BROKEN,
    NO_RESULT,
    SUCCEEDED,
    NotWanted,
    named,
    outcome_of,
    outcome_unstarted,
    unrecorded,
    unresponsive_error,
)
from django_jobqueue.execution.thread_exceptions import drop_pending, raise_in
from django_jobqueue.store.queue.finish import Finished
from django_jobqueue.store.rows import ClaimedJob
from django_jobqueue.text.json_reading import object_of, read_json
from django_jobqueue.text.redaction import Secrets, secrets_in

logger = logging.getLogger("django_jobqueue.attempt")


def _ignore(what: object) -> None:
    """Does nothing: there is no worker."""


class Attempt:
    """A claimed job on its way through this process."""

    # Class attributes as defaults: cheaper than a dataclass's __init__.

    started: float = 0.0  # time.monotonic(); 0 is not yet
    asked: StopReason = StopReason.NOTHING
    unresponsive_at: float | None = (
        None  # when a handler that was told to stop is given up
    )
    over: bool = False
    result: str | None = None  # JSON text
    error: BaseException | None = None
    finished: Finished | None = None  # what it came to, as soon as that is known
    handed_over: bool = False  # to whoever writes it
    # Whether it was over, and time.monotonic(), when its handler was first seen not to
    # run though it has a slot.
    outside_handler_since: tuple[bool, float] | None = None
    committed: bool = False  # finished in the handler's own transaction
    committing: bool = False  # that transaction, at this moment
    thread: int | None = None
    task: asyncio.Task[Any] | None = None
    data: Any = None  # what the handler is called with
    context: Context | None = None  # see here()
    reported: float = 0.0  # time.monotonic() when what it told was written
    runs_code: bool = True  # of the project, to work out the outcome
    observed: bool = False  # its end, by observers, in its own thread
    lost: bool = False  # its end is reported to them by others
    _before: Token[Callable[[], Context] | None] | None = None

    def __init__(
        self,
        job: ClaimedJob,
        declaration: Declaration,
        max_attempts: int | None,
        timeout: float | None,
        worker: str,
        claimed: float,
        on_report: Callable[[Attempt], None] = _ignore,
        save: Callable[[Context], None] = _ignore,
    ) -> None:
        self.job = job
        self.declaration = declaration
        self.max_attempts = max_attempts  # the effective one
        self.timeout = timeout  # seconds, the effective one
        self.worker = worker
        # time.monotonic() when the claim was sent: its commit may take long, and the
        # times of the job count from the statement.
        self.claimed = claimed
        self.on_report = on_report  # it has progress or lines to write
        self.save = save  # its metadata
        self._lock = threading.Lock()

    @property
    def deadline(self) -> float | None:
        """time.monotonic() at which it times out; None if it does not, or not yet."""
        if self.timeout is None or not self.started:
            return None
        return self.started + self.timeout

    @property
    def waited(self) -> float:
        """Seconds from when the job was due to its start."""
        return self.job.waited + self.started - self.claimed

    @property
    def has_unwritten_report(self) -> bool:
        """True if its progress or lines have changed since they were written."""
        return self.context is not None and self.context.report.is_changed

    @property
    def outcome(self) -> Outcome | None:
        """The outcome for its observers: None if it is unknown, or reported to them
        by others."""
        return None if self.lost or self.finished is None else self.finished.outcome

    @property
    def sender(self) -> object:
        """From whom signals about it come."""
        return registry.sender(self.job.job_type)

    @property
    def outcome_unstarted(self) -> Outcome | None:
        """The outcome of an attempt that is not to be started; None if it is to be
        started."""
        return outcome_unstarted(self.job, self.asked, self.max_attempts, self.claimed)

    def begin(self) -> Any:
        """Start; returns what to call the handler with.

        Raises NotWanted, InvalidArguments, and ValueError for data that is no JSON of
        ours.
        """
        # In this order, which interrupt() reverses: one of the two sees the other, and
        # no job pays for a lock (0.2 µs).
        self.started = time.monotonic()
        outcome = self.outcome_unstarted
        if outcome is not None:
            raise NotWanted(outcome)
        self._before = running.set(self.here)
        try:
            self.data = data = from_json(self.job.data)
        except ValueError as error:
            raise InvalidArguments(f"the data cannot be read: {error}") from None
        parameters = self.declaration.parameters
        if problem := parameters.problem(data):
            newer = parameters.are_unknown(data)
            raise (UnknownParameters if newer else InvalidArguments)(problem)
        return data

    def here(self) -> Context:
        """The context; made when it is first wanted."""
        with self._lock:
            if self.context is None:
                self.context = _context_of(self)
            return self.context

    def interrupt(self, why: StopReason) -> bool:
        """Tell the handler to stop, by an exception; False if it is over.

        A thread gets it at its next step in Python code, a task at its next await. It
        is sent once: a handler that does not obey is given up at ``unresponsive_at``.
        An attempt that has not begun will not begin.
        """
        with self._lock:
            if self.over or self.asked is not StopReason.NOTHING:
                return False
            if self.committing and why is not StopReason.TIME_OUT:
                return False
            self.asked = why
            if not self.started:
                return True
            patience = conf.cancel_grace if why is StopReason.TIME_OUT else conf.grace
            self.unresponsive_at = time.monotonic() + patience
            if self.context is not None:
                self.context._cancelled = True
            if self.committing:  # an exception would leave open whether it was done
                return True
            if self.task is not None:
                self.task.get_loop().call_soon_threadsafe(_cancel, self)
            elif self.thread is not None:
                error = JobTimeout if why is StopReason.TIME_OUT else Cancel
                raise_in(self.thread, error)
            return True

    def leave(self) -> None:
        """The handler has ended: nothing interrupts this thread for it any more."""
        with self._lock:
            self.over = True
            if self.asked is not StopReason.NOTHING and self.thread is not None:
                drop_pending(self.thread)
        before, self._before = self._before, None
        if before is not None:
            running.reset(before)

    def begin_commit(self) -> None:
        """The handler's own transaction is about to commit: nothing interrupts it."""
        with self._lock:
            self.committing = True

    def end_commit(self, result: str) -> None:
        """The handler's own transaction is committed: the job has succeeded."""
        with self._lock:
            self.result = result
            self.committed = True
            self.committing = False

    def fail(self, error: BaseException) -> None:
        """Keep the first exception, unless the attempt has succeeded already."""
        if self.result is None and self.error is None:
            self.error = error

    def finish_unstarted(self, outcome: Outcome) -> Finished:
        """End an attempt whose handler was not called, or that an endpoint goes on
        with: nobody is notified."""
        now = time.monotonic()
        if outcome.verb is not Verb.HAND_OVER:
            self.started = now
        self.over = True
        ran = now - self.started
        self.finished = Finished(self.job.id, self.job.fence, outcome, ran, now)
        return self.finished

    def finish_broken(self) -> Finished:
        """End an attempt whose outcome raised when it was worked out or announced;
        called in an ``except``."""
        event = {"event": Event.ATTEMPT_FAILED}
        logger.exception(
            "The end of job %s could not be handled", self.job.id, extra=event
        )
        self.over = True
        if self.finished is not None:
            return self.finished
        now = time.monotonic()
        self.started = self.started or now
        return Finished(self.job.id, self.job.fence, BROKEN, now - self.started, now)

    def finish_unresponsive(
        self, consequence: str = "its worker process was replaced"
    ) -> Finished:
        """Give up an attempt that did not stop: work out its outcome, and notify nobody
        yet."""
        self.over, self.runs_code = True, False  # a backoff may hang, too
        if not self.committed:
            self.error = unresponsive_error(self.asked, self.timeout, consequence)
        self.finished = self.conclude()
        return self.finished

    @property
    def is_known(self) -> bool:
        """True if its outcome needs no more of the project's code."""
        return self.finished is not None or self.error is None

    def finish_ended(
        self, consequence: str = "its worker process was replaced"
    ) -> Finished:
        """It is over, and what comes after its handler hangs: what to record for it.

        What is known is recorded: a success stays one. Where not even that can be
        worked out, as with an exception whose text takes forever, it has timed out.
        """
        if self.finished is not None:
            return self.finished
        if self.error is not None:
            self.error = unrecorded(self.asked, self.error, consequence)
            vars(self)["secrets"] = Secrets()  # to look for them may be what hangs
            self.runs_code = False  # or a backoff
        return self.conclude()

    def conclude(self) -> Finished:
        """Work out the outcome of an attempt that has ended."""
        now, job = time.monotonic(), self.job
        ran = now - self.started
        if self.error is not None:
            outcome = self._outcome(self.error)
            tail = "" if self.context is None else self.context.report.tail()
            return Finished(
                job.id, job.fence, outcome, ran, now, tail, self.max_attempts
            )
        outcome = SUCCEEDED
        if self.result != NO_RESULT:
            outcome = Outcome(verb=Verb.SUCCEED, result=self.result)
        return Finished(job.id, job.fence, outcome, ran, now)

    def _outcome(self, error: BaseException) -> Outcome:
        self.error = named(error, self.asked, self.timeout)
        try:
            return _outcome_of(self, self.error)
        except Exception as wrong:  # such as a Snooze without its wait
            return _outcome_of(self, wrong)

    @cached_property
    def secrets(self) -> Secrets:
        """The texts in its data that must not be shown."""
        data = read_json(self.job.data)
        return secrets_in(data, self.declaration.policy.sensitive)


def _cancel(attempt: Attempt) -> None:
    """In the event loop: the writing of an end meanwhile is not cancelled."""
    if attempt.task is not None and not attempt.over:
        attempt.task.cancel()


def _outcome_of(attempt: Attempt, error: BaseException) -> Outcome:
    return outcome_of(
        error,
        job_type=attempt.job.job_type,
        policy=attempt.declaration.policy,
        attempt=attempt.job.attempts,
        max_attempts=attempt.max_attempts,
        asked=attempt.asked,
        given_back=attempt.job.fence - attempt.job.attempts,
        backoff=attempt.job.backoff,
        context=attempt.here if attempt.runs_code else None,
        secrets=attempt.secrets,
    )


def _context_of(attempt: Attempt) -> Context:
    job = attempt.job
    return Context(
        id=job.id,
        job_type=job.job_type,
        queue=job.queue,
        attempt=job.attempts,
        max_attempts=attempt.max_attempts,
        crashes=job.crashes,
        data=attempt.data,
        run_after=job.run_after,
        created_at=job.created_at,
        worker=attempt.worker,
        deadline=attempt.deadline,
        fence=job.fence,
        metadata=object_of(job.metadata) or {},
        report=Report(lambda: attempt.on_report(attempt), lambda: attempt.secrets),
        _cancelled=attempt.asked is not StopReason.NOTHING,
        _save=attempt.save,
    )
