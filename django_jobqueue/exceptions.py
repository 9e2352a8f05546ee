"""The errors, and the four words a handler may raise.

::

    JobQueueError
    ├── EnqueueError
    │   ├── UnknownJobType      the name is no job type; names the near misses
    │   ├── InvalidArguments    says which argument or option, and why
    │   ├── DuplicateJob        carries the job that it duplicates
    │   └── AlreadyArchived     the id was used, and its job is over
    ├── UnknownSchedule         no schedule has this name; names the near misses
    ├── DeclaredInCode          code declares this job type; nobody else may
    ├── JobNotFound             no job has this id, neither queued nor archived
    ├── ClaimLost               it was rescued while it ran here; nothing was written
    ├── LeaseUnavailable        somebody else holds the lease; says who
    ├── LeaseLost               the lease is not held here any more; says why
    ├── NotReplayable           says what state the job is in
    ├── NotEditable             its data cannot be edited: it does not wait
    ├── JobChanged              its data are not those that you saw
    ├── InvalidResult           a handler returned what JSON does not have; says where
    ├── NoCurrentJob            no attempt runs here; current_job(default=None) asks
    ├── MetricsExtraMissing     prometheus_client is not installed; says what to install
    ├── RemoteExtraMissing      httpx is not installed; says what to install
    ├── NotDelivered            an endpoint was not reached, so nothing was sent
    ├── EndpointError           an endpoint answered that it did not do the job
    ├── StoreUnavailable        the database cannot be used now; says when to try again
    └── NotDone                 why a job is over that did not do its work, in results
        ├── JobCancelled        an operator, or the handler, did not want it any more
        ├── JobExpired          it was not started in time
        └── JobLost             it ended without an exception: its worker died, say

    JobControl                  said by a handler on purpose; no failures of ours
    ├── Retry(after=…)          run me again, this attempt is spent
    ├── Snooze(for_=…)          run me again later, this attempt is not spent
    ├── Fail(reason)            no further attempt
    └── Cancel(reason)          the job is not wanted any more

    JobTimeout                  raised inside a handler that outlives its timeout

A mistake in the settings or in the options of ``@job`` is Django's own
``ImproperlyConfigured``.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from django_jobqueue.retries import LONGEST, within_bounds
from django_jobqueue.text.foreign_words import RAISED, advice

if TYPE_CHECKING:
    from django_jobqueue.store.rows import Job


class JobQueueError(Exception):
    """Anything that this package raises to its callers."""


class EnqueueError(JobQueueError):
    """The job was not enqueued; nothing was written."""


class UnknownJobType(EnqueueError):
    """No job type has this name. ``near`` lists the names most like it; ``follows`` is
    the job type whose jobs it was to follow on, if a follower was named so."""

    def __init__(
        self, name: str, near: list[str] | None = None, *, follows: str = ""
    ) -> None:
        self.name = name
        self.near = near or []
        self.follows = follows
        hint = (
            f" Did you mean {' or '.join(repr(n) for n in self.near)}?"
            if self.near
            else " Declare a handler for it with @job in an app's jobs.py, or run "
            "manage.py migrate where the handler is declared."
        )
        whose = f"follower of {follows!r}: " if follows else ""
        there = "there" if whose else "There"
        super().__init__(f"{whose}{there} is no job type {name!r}.{hint}")


class UnknownSchedule(JobQueueError):
    """No schedule has this name. ``near`` lists the names most like it."""

    def __init__(self, name: str, near: list[str] | None = None) -> None:
        self.name = name
        self.near = near or []
        hint = (
            f" Did you mean {' or '.join(repr(n) for n in self.near)}?"
            if self.near
            else ""
        )
        super().__init__(f"There is no schedule {name!r}.{hint}")


class InvalidArguments(EnqueueError, ValueError):
    """The arguments or options of a job were refused; the message says which."""


class DuplicateJob(EnqueueError):
    """A job like this one is there already: ``job``, as it was then; None if it is
    another call of the same ``enqueue_many``."""

    def __init__(self, message: str, job: Job | None = None) -> None:
        super().__init__(message)
        self.job = job


class AlreadyArchived(EnqueueError):
    """The id given to ``enqueue`` was used before, and that job is over: ``status``."""

    def __init__(self, id: UUID, status: str) -> None:
        self.id = id
        self.status = status
        super().__init__(
            f"Job {id} has already ended ({status}), so its id cannot be enqueued "
            "again. "
            "Replay it, or use a new id."
        )


class JobNotFound(JobQueueError, LookupError):
    """No queued and no archived job has this id."""

    def __init__(self, id: UUID | str) -> None:
        self.id = id
        super().__init__(
            f"There is no job {id}, neither queued nor archived. It may have been "
            "pruned, or the transaction that enqueued it was rolled back."
        )


class ClaimLost(JobQueueError):
    """This worker lost its claim while the job ran; nothing of it was written."""

    def __init__(self, id: UUID) -> None:
        self.id = id
        super().__init__(
            f"The claim on job {id} was lost while it ran: its worker was presumed "
            "dead and the job given to another. This attempt wrote nothing."
        )


class LeaseUnavailable(JobQueueError):
    """Somebody else held the lease ``name`` for as long as you were ready to wait.
    ``holder`` names the process, ``host:pid``; empty if it is not known."""

    def __init__(self, name: str, holder: str = "", wait: float = 0.0) -> None:
        self.name = name
        self.holder = holder
        whose = f": {holder} holds it" if holder else ""
        when = f"was not free within {wait:g} s" if wait else "is not free"
        super().__init__(f"The lease {name!r} {when}{whose}.")


class LeaseLost(JobQueueError):
    """The lease ``name`` is not held here any more, so others may hold it."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"The lease {name!r} is no longer held here: {reason}.")


class NotReplayable(JobQueueError):
    """Only an archived job can be replayed. ``status`` is what this one is; "erased" is
    one whose personal data were erased."""

    def __init__(self, id: UUID, status: str) -> None:
        self.id = id
        self.status = status
        super().__init__(
            f"The personal data of job {id} was erased; replay it with other data."
            if status == "erased"
            else f"Job {id} is {status}; only a finished job can be replayed. "
            "Wait for it to end, or cancel it first."
        )


class DeclaredInCode(JobQueueError):
    """The project's code declares this job type, so its options are those of the
    code."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"The project's code declares job type {name!r}: change it there, or "
            "override its options."
        )


class NotEditable(JobQueueError):
    """Only a waiting job's data can be edited. ``status`` is what this one is."""

    def __init__(self, id: UUID, status: str) -> None:
        self.id = id
        self.status = status
        super().__init__(
            f"Job {id} is {status}; only the data of a waiting job can be edited. "
            "When it is over, replay it with other data."
        )


class JobChanged(JobQueueError):
    """The job is not as you saw it: somebody edited its data meanwhile."""

    def __init__(self, id: UUID) -> None:
        self.id = id
        super().__init__(
            f"The data of job {id} was edited meanwhile. Nothing was changed: read it "
            "again before you edit."
        )


class InvalidResult(JobQueueError, TypeError):
    """The handler's result is not JSON. Its work is done, and another attempt would
    return the same, so there is none."""


class NoCurrentJob(JobQueueError, LookupError):
    """No attempt runs in this thread, or task."""

    def __init__(self) -> None:
        super().__init__(
            "No job runs here: current_job() is for handlers and what they call. In "
            "code that is also called elsewhere ask with current_job(default=None). A "
            "thread that a handler started needs contextvars.copy_context().run."
        )


class StoreUnavailable(JobQueueError):
    """The database cannot be used just now. Try again in ``retry_in`` seconds.

    ``is_outage`` is false where the database answers, but not to this statement: it
    waited for a lock, or took too long.
    """

    def __init__(
        self, message: str, *, retry_in: float, is_outage: bool = True
    ) -> None:
        super().__init__(message)
        self.retry_in = retry_in
        self.is_outage = is_outage


class MetricsExtraMissing(JobQueueError, ImportError):
    """Metrics were asked for, and ``prometheus_client`` is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "Metrics need prometheus_client. Install it: "
            'pip install "django-jobqueue[metrics]"'
        )


class RemoteExtraMissing(JobQueueError, ImportError):
    """A job is to be sent to an endpoint, and ``httpx`` is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "Jobs of endpoints need httpx. Install it: "
            'pip install "django-jobqueue[remote]"'
        )


class NotDelivered(JobQueueError):
    """The endpoint could not be reached. Nothing was sent, so even an at-most-once job
    is tried again, for an hour."""


class EndpointError(JobQueueError):
    """The endpoint answered that it did not do the job: ``status`` of HTTP."""

    def __init__(self, message: str, status: int) -> None:
        self.status = status
        super().__init__(message)


class NotDone(JobQueueError):
    """Why a job is over that did not do its work; the class of an error in the results
    of Django's tasks."""


class JobCancelled(NotDone):
    """The job was cancelled, by an operator or by itself."""


class JobExpired(NotDone):
    """The job was not started in time."""


class JobLost(NotDone):
    """The job, or an attempt, ended without an exception, as when its worker died."""


class JobControl(Exception):
    """Base class of the exceptions by which a handler controls its job."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Raises TypeError for an argument that another queue's exception has."""
        for name in kwargs:
            if hint := advice(name, RAISED):
                raise TypeError(f"{cls.__name__} has no argument {name!r}.{hint}")
        return super().__new__(cls, *args)


class Retry(JobControl):
    """Run this job again; the attempt is spent.

    ``after`` is the wait (a timedelta, or seconds); without it the job type's backoff
    decides. A negative wait counts as zero, and a longer one than a year as a year.
    When no attempt is left the job is archived as failed. ``hold`` holds back all jobs
    that share this job's rate for that time: those of its key if its keys have a rate,
    otherwise those of its job type. Raises TypeError for a wait in the place of the
    reason, and for an invalid wait; ValueError for ``hold`` without a wait.
    """

    def __init__(
        self,
        reason: str = "",
        *,
        after: timedelta | float | None = None,
        hold: bool = False,
    ) -> None:
        if isinstance(reason, int | float | timedelta):
            raise TypeError(
                f"Retry takes the reason first. Write Retry(after={reason!r})."
            )
        self.reason = reason
        self.after = None if after is None else _as_timedelta("after", after)
        if hold and self.after is None:
            raise ValueError("hold needs a time: write Retry(after=30, hold=True).")
        self.hold = hold
        super().__init__(reason or "the handler asked to be retried")


class Snooze(JobControl):
    """Run this job again after ``for_`` (a timedelta, or seconds); costs no attempt.

    A negative wait counts as zero, and a longer one than a year as a year. Raises
    TypeError for an invalid wait.
    """

    def __init__(self, for_: timedelta | float, reason: str = "") -> None:
        if isinstance(for_, str):
            raise TypeError(f"Snooze takes the wait first. Write Snooze(60, {for_!r}).")
        self.reason = reason
        self.for_ = _as_timedelta("for_", for_)
        super().__init__(reason or f"snoozed for {self.for_}")


class Fail(JobControl):
    """Archive this job as failed now, even with attempts left."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Cancel(JobControl):
    """Archive this job as cancelled: it is no longer wanted."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        super().__init__(reason or "cancelled")


class JobTimeout(TimeoutError):
    """Raised inside a handler that runs longer than its job type's timeout."""


def _as_timedelta(name: str, value: timedelta | float) -> timedelta:
    """A wait that can be kept; anything may be given. Raises TypeError."""
    if isinstance(value, timedelta):
        return within_bounds(value)
    if isinstance(value, int | float) and value == value:
        return timedelta(seconds=min(max(value, 0), LONGEST.total_seconds()))
    hint = " Write moment - timezone.now()." if isinstance(value, datetime) else ""
    raise TypeError(
        f"{name} must be a timedelta or a number of seconds, not {value!r}.{hint}"
    )
