"""The bodies of what remote workers send, and of the answers."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, Field, StrictBool, StrictInt

from django_jobqueue.conf import GREATEST
from django_jobqueue.contrib.http.schemas import (
    LONGEST_WAIT,
    Body,
    Data,
    JobId,
    JobStatus,
    Line,
    Text,
    check_line,
)
from django_jobqueue.domain.policy import NAME_LENGTH
from django_jobqueue.retries import LONGEST

MOST_TYPES: Final = 1_000  # of a worker
MOST_SLOTS: Final = 1_000
BIGGEST: Final = 2**63 - 1
YEAR: Final = LONGEST.total_seconds()
LONGEST_HOLD: Final = 86_400  # seconds


class NewRemoteWorker(Body):
    """A program that does jobs."""

    name: Line = Field(description="What people see: a host and a process, say.")
    job_types: Annotated[list[Line], Field(min_length=1, max_length=MOST_TYPES)] = (
        Field(description="What it can do.")
    )
    queues: Annotated[list[Line], Field(min_length=1, max_length=MOST_TYPES)] | None = (
        Field(None, description="Null is every queue.")
    )
    slots: Annotated[StrictInt, Field(ge=1, le=MOST_SLOTS)] = Field(
        1, description="How many jobs it has at once, at most."
    )
    lease_seconds: Annotated[float, Field(strict=True, ge=10, le=600)] = Field(
        60.0,
        description="Its jobs are rescued after this many seconds without a heartbeat.",
    )
    release: Annotated[
        Text, Field(max_length=NAME_LENGTH), AfterValidator(check_line)
    ] = Field("", description="Of its code.")


class RemoteWorker(BaseModel):
    """A program that does jobs, as it is registered."""

    id: int
    lease_seconds: float = Field(description="Renew it in less than half of them.")
    poll_seconds: int = Field(description="The longest `wait` of a claim.")
    notice: str | None = Field(description="What an operator should know.")


class Claim(Body):
    """How many jobs are wanted."""

    limit: Annotated[StrictInt, Field(ge=1, le=MOST_SLOTS)] = Field(
        1, description="At most: as many as it has free slots for."
    )
    wait: Annotated[StrictInt, Field(ge=0, le=LONGEST_WAIT)] = Field(
        0, description="Seconds to wait for the first."
    )


class ClaimedJob(BaseModel):
    """A job to do."""

    id: JobId
    name: str = Field(description="The job type.")
    queue: str
    data: Data
    attempt: int = Field(description="Its number; the first is 1.")
    fence: int = Field(description="Proves the claim; send it with the outcome.")
    timeout_seconds: float | None = Field(description="Null is unlimited.")
    metadata: Data | None


class ClaimedJobs(BaseModel):
    """Jobs to do."""

    jobs: list[ClaimedJob]
    asked: str = Field(description="What an operator asks: drain, stop, restart.")
    next_due_seconds: float | None = Field(
        description="Until the next job is due that waits now; null if none does."
    )
    poll_seconds: float = Field(description="Wait so long before the next claim.")


class Progress(Body):
    """How far an attempt is."""

    done: Annotated[float, Field(strict=True, ge=0, le=1e15)] | None = None
    total: Annotated[float, Field(strict=True, ge=0, le=1e15)] | None = None
    note: Annotated[Text, Field(max_length=500)] = ""


class Renewal(Body):
    """A sign of life."""

    running: Annotated[list[JobId], Field(max_length=MOST_SLOTS)] | None = Field(
        None,
        description="The jobs that it has. One that it was given a whole lease ago, "
        "and that is missing here, is given to others.",
    )
    progress: Annotated[dict[JobId, Progress], Field(max_length=MOST_SLOTS)] = Field(
        {}, description="By the ids of jobs."
    )


class Renewed(BaseModel):
    """Jobs and requests for a worker."""

    lease_seconds: float
    asked: str = Field(description="What an operator asks: drain, stop, restart.")
    cancel: list[JobId] = Field(
        description="Stop these: they are to be cancelled, or are its jobs no more."
    )


class Left(BaseModel):
    """The end of a worker."""

    released: int = Field(description="How many jobs it had.")


class AttemptError(Body):
    """The error of an attempt."""

    error_class: Annotated[Text, Field(alias="class", max_length=200)] = Field(
        "RemoteError", alias="class", description="Failures are grouped by it."
    )
    message: Text = ""
    traceback: Text = ""


class AttemptStatus(Body):
    """The end of an attempt."""

    worker: Annotated[StrictInt, Field(ge=1, le=BIGGEST)] | None = Field(
        None,
        description="The id of the worker that claimed the job; null if it was sent "
        "to you as an endpoint.",
    )
    fence: Annotated[StrictInt, Field(ge=-BIGGEST, le=BIGGEST)] | None = Field(
        None, description="That of the claim."
    )
    attempt: Annotated[StrictInt, Field(ge=1, le=GREATEST)] | None = Field(
        None,
        description="For endpoints that know no fence: the `attempts` that they were "
        "sent.",
    )
    status: Literal["succeeded", "failed", "cancelled", "released"] = Field(
        description="`released`: it was not done, and goes back without an attempt."
    )
    result: Any = Field(None, description="Of `succeeded`: any JSON.")
    error: AttemptError | None = Field(None, description="Of `failed`.")
    retryable: StrictBool = Field(
        True, description="False: `failed` for good, whatever attempts are left."
    )
    retry_after: Annotated[float, Field(strict=True, ge=0, le=YEAR)] | None = Field(
        None, description="Seconds; else the backoff of the job type decides."
    )
    hold: StrictBool = Field(
        False,
        description="Of `failed` with `retry_after`: until then no job starts that "
        "shares the rate of this one: at most a day, and for callers that may work for "
        "the job type in every queue.",
    )

    @property
    def held_seconds(self) -> float | None:
        """How long others are to wait, too."""
        return self.retry_after if self.hold and self.status == "failed" else None


class Accepted(BaseModel):
    """The job as the outcome left it."""

    id: JobId
    status: JobStatus
