"""One execution of a job: data → handler → value or exception → Outcome. No table is
touched here."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django_jobqueue import signals
from django_jobqueue.arguments import from_json, result_to_json
from django_jobqueue.conf import conf
from django_jobqueue.context import Context
from django_jobqueue.exceptions import (
    Cancel,
    Fail,
    InvalidArguments,
    JobTimeout,
    LeaseLost,
)
from django_jobqueue.failures import Failure
from django_jobqueue.outcomes import Asked, Outcome, Verb, decide
from django_jobqueue.redaction import mask_text, secrets_in
from django_jobqueue.registry import Declaration
from django_jobqueue.states import AttemptEnd
from django_jobqueue.store.finish import Finished
from django_jobqueue.store.rows import ClaimedJob

logger = logging.getLogger(__name__)

EXPIRED: Final = Outcome(verb=Verb.EXPIRE)
CANCELLED: Final = Outcome(verb=Verb.CANCEL, reason="cancelled before it started")
BROKEN: Final = Outcome(
    verb=Verb.FAIL,
    end=AttemptEnd.FAILED,
    reason="the worker could not handle the end of this attempt; see its log",
)
_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc


@dataclass(slots=True, eq=False)
class Attempt:
    """A claimed job on its way through this process."""

    job: ClaimedJob
    declaration: Declaration
    max_attempts: int | None  # the effective one
    timeout: float | None  # seconds, the effective one
    worker: str
    claimed: float  # time.monotonic() when the claim came back
    started: float = 0.0  # time.monotonic(); 0 is not yet
    asked: Asked = Asked.NOTHING
    hopeless_at: float | None = None  # when a handler that was told to stop is given up
    over: bool = False
    result: str | None = None  # JSON text
    error: BaseException | None = None
    settled: bool = False  # finished in the handler's own transaction
    thread: int | None = None
    task: asyncio.Task[Any] | None = None
    context: Context | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

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
    def unwanted(self) -> Outcome | None:
        """What it comes to without being started; None if it is to be started."""
        if self.asked is Asked.CANCEL:
            return CANCELLED
        expires_in = self.job.expires_in
        late = expires_in is not None and time.monotonic() - self.claimed >= expires_in
        return EXPIRED if late else None

    def begin(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Start; returns what to call the handler with.

        Raises InvalidArguments, and ValueError for data that is no JSON of ours.
        """
        self.started = time.monotonic()
        data = from_json(self.job.data)
        if problem := self.declaration.parameters.problem(data):
            raise InvalidArguments(problem)
        takes_context = self.declaration.policy.takes_context
        if takes_context or signals.attempt_started.receivers:
            self.context = self.make_context(data)
            signals.send(
                signals.attempt_started, self.job.job_type, context=self.context
            )
        return ((self.context,) if takes_context else ()), data

    def end(self, value: Any) -> str:
        """The handler returned this: its JSON text. Raises Fail if it has none."""
        if value is None:
            return "null"
        try:
            return result_to_json(value, limit=conf.max_result_bytes)
        except TypeError as error:
            raise Fail(str(error)) from error

    def interrupt(self, why: Asked) -> bool:
        """Tell the handler to stop, by an exception; False if it is over.

        A thread gets it at its next step in Python code, a task at its next await. It
        is sent once: a handler that does not obey is given up at ``hopeless_at``. One
        that has not begun will not begin.
        """
        with self._lock:
            if self.over or self.asked is not Asked.NOTHING:
                return False
            self.asked = why
            if not self.started:
                return True
            patience = conf.cancel_grace if why is Asked.TIME_OUT else conf.grace
            self.hopeless_at = time.monotonic() + patience
            if self.context is not None:
                self.context._cancelled = True
            if self.task is not None:
                self.task.get_loop().call_soon_threadsafe(self.task.cancel)
            elif self.thread is not None:
                error = JobTimeout if why is Asked.TIME_OUT else Cancel
                _raise_in(ctypes.c_ulong(self.thread), ctypes.py_object(error))
            return True

    def leave(self) -> None:
        """The handler has ended: nothing interrupts this thread for it any more."""
        with self._lock:
            self.over = True
            if self.asked is not Asked.NOTHING and self.thread is not None:
                _raise_in(ctypes.c_ulong(self.thread), None)

    def finish(self) -> Finished:
        """What it came to."""
        ended = time.monotonic()
        seconds = ended - self.started
        if self.error is None:
            outcome = Outcome(verb=Verb.SUCCEED, result=self.result)
            self._tell(signals.attempt_succeeded, seconds=seconds)
        else:
            error = self._named(self.error)
            try:
                outcome = self._outcome(error)
            except Exception as wrong:  # such as a Snooze without its wait
                outcome = self._outcome(wrong)
            self._tell(
                signals.attempt_failed, seconds=seconds, outcome=outcome, error=error
            )
        return Finished(self.job.id, self.job.fence, outcome, seconds, ended)

    def finish_unstarted(self, outcome: Outcome) -> Finished:
        """What a job came to that was not started."""
        self.started = now = time.monotonic()
        self.over = True
        return Finished(self.job.id, self.job.fence, outcome, 0.0, now)

    def finish_broken(self) -> Finished:
        """What it came to could not be worked out; called in an ``except``."""
        logger.exception("The end of job %s could not be handled", self.job.id)
        now = time.monotonic()
        self.started = self.started or now
        self.over = True
        return Finished(self.job.id, self.job.fence, BROKEN, now - self.started, now)

    def finish_hopeless(self) -> Finished:
        """It did not obey and its process is about to end: what to record for it."""
        self.over = True
        text = "did not stop when told, so its worker process was replaced"
        if self.asked is Asked.CANCEL:
            self.error = Cancel(f"it was cancelled, and {text}")
        else:
            self.error = JobTimeout(
                f"it ran longer than its timeout of {self.timeout or 0:g} s, and {text}"
            )
        return self.finish()

    def make_context(self, data: Any) -> Context:
        """What the handler, and receivers of signals, may know."""
        job = self.job
        return Context(
            id=job.id,
            job_type=job.job_type,
            queue=job.queue,
            attempt=job.attempts,
            max_attempts=self.max_attempts,
            crashes=job.crashes,
            data=data,
            run_after=job.run_after,
            created_at=job.created_at,
            worker=self.worker,
            deadline=self.deadline,
        )

    def _tell(self, signal: Any, **arguments: Any) -> None:
        if signal.receivers:
            if self.context is None:
                self.context = self.make_context(self._data_or_none())
            signals.send(signal, self.job.job_type, context=self.context, **arguments)

    def _named(self, error: BaseException) -> BaseException:
        """A timeout says that it is one, however it reached the handler."""
        if self.asked is Asked.TIME_OUT and (
            isinstance(error, asyncio.CancelledError)
            or (isinstance(error, JobTimeout) and not error.args)
        ):
            text = f"it ran longer than its timeout of {self.timeout or 0:g} s"
            return JobTimeout(text).with_traceback(error.__traceback__)
        return error

    def _outcome(self, error: BaseException) -> Outcome:
        policy = self.declaration.policy
        if isinstance(error, LeaseLost):
            return Outcome(verb=Verb.RELEASE, reason=str(error))  # will be refused
        outcome = decide(
            error,
            policy=policy,
            attempt=self.job.attempts,
            max_attempts=self.max_attempts,
            asked=self.asked,
        )
        secrets = secrets_in(self._data_or_none(), policy.sensitive)
        if outcome.verb not in (Verb.FAIL, Verb.RETRY):
            return replace(outcome, reason=mask_text(outcome.reason, secrets))
        failure = Failure.of(error, job_type=self.job.job_type, secrets=secrets)
        return replace(outcome, failure=failure)

    def _data_or_none(self) -> Any:
        try:
            return from_json(self.job.data)
        except ValueError:
            return None


def run(attempt: Attempt) -> Finished:
    """Run a sync handler in this thread; whatever it raises is its outcome."""
    if attempt.unwanted:
        return attempt.finish_unstarted(attempt.unwanted)
    attempt.thread = threading.get_ident()
    try:
        try:
            args, kwargs = attempt.begin()
            attempt.result = attempt.end(attempt.declaration.function(*args, **kwargs))
        except BaseException as error:
            attempt.error = error
        attempt.leave()
    except BaseException as late:  # the interruption, after the handler's own end
        attempt.leave()
        if attempt.result is None and attempt.error is None:
            attempt.error = late
    return attempt.finish()


async def arun(attempt: Attempt) -> Finished:
    """Run an async handler in this task; whatever it raises is its outcome."""
    if attempt.unwanted:
        return attempt.finish_unstarted(attempt.unwanted)
    try:
        args, kwargs = attempt.begin()
        value = await attempt.declaration.function(*args, **kwargs)
        attempt.result = attempt.end(value)
    except BaseException as error:
        attempt.error = error
    attempt.leave()
    return attempt.finish()
