"""The bodies of requests and answers, as pydantic checks and OpenAPI describes them."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from django.apps import apps
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    StringConstraints,
    WithJsonSchema,
)

from django_jobqueue.conf import CENTURY, GREATEST
from django_jobqueue.contrib.http.strict_json import check_text
from django_jobqueue.domain.policy import NAME_LENGTH, READABLE
from django_jobqueue.enqueueing.propagation import TENANT

MOST_AT_ONCE: Final = 1_000  # jobs of one request
LONGEST_WAIT: Final = 30  # seconds
ID_PATTERN: Final = (
    "^job_[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"
)

_MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def _moment(value: Any) -> Any:
    """A text of RFC 3339; pydantic itself takes numbers and more, too."""
    if not isinstance(value, str) or not _MOMENT.fullmatch(value):
        raise ValueError("must be a moment such as 2026-11-26T10:00:00Z")
    return value


def _storable(value: datetime) -> datetime:
    earliest, latest = READABLE
    if not earliest <= value <= latest:
        raise ValueError(f"must be from {earliest:%Y-%m-%d} to {latest:%Y-%m-%d}")
    return value


def check_line(text: str) -> str:
    """The same text. Raises ValueError for one that could end a line of the log."""
    if not text.isprintable():
        raise ValueError("must have no line feed and no other control character")
    return text


def _check_metadata(value: dict[str, Any]) -> dict[str, Any]:
    """The same metadata. Raises ValueError for a tenant, in whose schema the job would
    run, where there are schemas of tenants."""
    if TENANT in value and apps.is_installed("django_tenants"):
        raise ValueError(f"{TENANT} is for the site to say, not for its callers")
    return value


Text = Annotated[StrictStr, AfterValidator(check_text)]
Name = Annotated[
    StrictStr,
    StringConstraints(min_length=1, max_length=NAME_LENGTH),
    AfterValidator(check_text),
]
# Whatever stands in a line of the log, or of a command.
Line = Annotated[Name, AfterValidator(check_line)]
# Paths and query strings are texts anyway.
PathName = Annotated[str, Field(max_length=NAME_LENGTH), AfterValidator(check_text)]
PathId = Annotated[
    str, Field(json_schema_extra={"pattern": ID_PATTERN}), AfterValidator(check_text)
]
Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    AfterValidator(_storable),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Priority = Annotated[StrictInt, Field(ge=-100, le=100)]
Attempts = Annotated[StrictInt, Field(ge=1, le=GREATEST)]
Data = Annotated[dict[str, Any], WithJsonSchema({"type": "object"})]
JobId = Annotated[str, Field(pattern=ID_PATTERN)]
JobStatus = Literal[
    "queued", "in-progress", "succeeded", "failed", "expired", "cancelled"
]
Seconds = Annotated[float, Field(strict=True, ge=0.001, le=CENTURY)]


class Body(BaseModel):
    """A body of a request: what it does not know, it refuses."""

    model_config = ConfigDict(extra="forbid")


class NewJob(Body):
    """A job to enqueue."""

    data: Data = Field(description="The arguments of the handler.")
    run_after: Moment | None = Field(None, description="The job starts no earlier.")
    expires_at: Moment | None = Field(None, description="The job starts no later.")
    queue: Name | None = Field(None, description="Instead of its job type's.")
    priority: Priority | None = Field(None, description="Greater is sooner.")
    max_attempts: Attempts | None = Field(None, description="The first one included.")
    timeout: Seconds | None = Field(None, description="Of an attempt, in seconds.")
    tags: Annotated[list[Name], Field(max_length=100)] | None = Field(
        None, description="Texts that are stored with the job."
    )
    metadata: Annotated[Data, AfterValidator(_check_metadata)] | None = Field(
        None, description="Stored beside the data."
    )
    unique_key: Name | None = Field(
        None, description="No other job of its type can have this key."
    )

    def options(self) -> dict[str, Any]:
        """The options that are given."""
        values = {name: getattr(self, name) for name in self.model_fields_set}
        values.pop("data", None)
        values.pop("id", None)
        return {name: value for name, value in values.items() if value is not None}


class NewJobWithId(NewJob):
    """A job to enqueue under the id in the path."""

    id: JobId | None = Field(None, description="If it is given, that of the path.")


class NewJobOfMany(NewJob):
    """One of several jobs to enqueue."""

    id: JobId | None = Field(None, description="Your own id, or none.")


class NewJobs(Body):
    """Several jobs of one type."""

    jobs: Annotated[
        list[NewJobOfMany], Field(min_length=1, max_length=MOST_AT_ONCE)
    ] = Field(description="All or none are enqueued, in this order.")


class JobIds(BaseModel):
    """The ids of several jobs."""

    ids: list[JobId] = Field(description="In the order of the request.")


class Job(BaseModel):
    """A job, wherever it is."""

    id: JobId
    name: str = Field(description="The job type.")
    status: JobStatus
    attempts: int | None = Field(
        description="How many attempts are left, a running one included; null is "
        "unlimited."
    )
    attempt: int = Field(description="How many attempts were started.")
    max_attempts: int | None = Field(description="Null is unlimited.")
    crashes: int = Field(description="How many attempts ended with their worker.")
    queue: str
    priority: int
    tags: list[str]
    created_at: datetime
    run_after: datetime
    expires_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    replay_of: JobId | None = Field(description="The job that this one repeats.")
    error_class: str | None = Field(
        description="Of the last error of a job that failed."
    )
    data: Any = Field(None, description="With the scope read-data, secrets masked.")
    metadata: Any = Field(None, description="Likewise.")
    result: Any = Field(None, description="Likewise; what the handler returned.")
    error_message: str = Field("", description="Likewise.")


class Jobs(BaseModel):
    """A page of a list."""

    jobs: list[Job]
    cursor: str | None = Field(description="Of the next page; null after the last one.")


class Paused(BaseModel):
    """A queue or job type."""

    name: str
    is_paused: bool


class Replay(Body):
    """Changes for the new job."""

    run_after: Moment | None = None
    expires: Literal["same", "keep", "never"] = Field(
        "same", description="The same lifetime again; the old moment; or never."
    )
    queue: Name | None = None
    priority: Priority | None = None
    max_attempts: Attempts | None = None
    data: Data | None = None

    def options(self) -> dict[str, Any]:
        """The options that are given."""
        values = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: value for name, value in values.items() if value is not None}


class Changes(Body):
    """Changes to a waiting job."""

    data: Data | None = None
    if_data: Data | None = Field(None, description="The data that you saw.")
    run_after: Moment | None = None
    priority: Priority | None = None
    queue: Name | None = None

    def moves(self) -> dict[str, Any]:
        """The changes beside the data."""
        names = ("run_after", "priority", "queue")
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}


class NewOperation(Body):
    """A bulk operation to start."""

    kind: Literal["replay", "cancel", "run_now"]
    where: Text = Field(
        max_length=1_000, description="A search, as in the admin; empty is every job."
    )
    reason: Text | None = Field(None, max_length=1_000)
    per_minute: Attempts | None = Field(None, description="Jobs at most.")
    limit: Attempts | None = Field(None, description="Jobs in all, the oldest first.")
    dry_run: StrictBool = False

    def options(self) -> dict[str, Any]:
        """The options that are given."""
        values = {"per_minute": self.per_minute, "limit": self.limit}
        return {name: value for name, value in values.items() if value is not None}


class Operation(BaseModel):
    """A bulk operation."""

    id: UUID
    kind: str
    state: str = Field(description="queued, running, paused, done, stopped, failed …")
    where: str = Field(description="Which jobs, with secrets masked.")
    reason: str
    per_minute: int | None
    total: int | None = Field(description="Null until they are counted.")
    changed: int
    skipped: dict[str, int]
    created_by: str


class Operations(BaseModel):
    """Bulk operations."""

    operations: list[Operation]


class Depth(BaseModel):
    """Waiting and running jobs of one job type in one queue."""

    queue: str
    job_type: str
    ready: int
    later: int
    retrying: int
    running: int
    oldest: float | None = Field(description="Seconds that the oldest one waits.")


class Worker(BaseModel):
    """A worker."""

    name: str
    is_remote: bool = Field(description="Another program, which uses this API.")
    state: str
    queues: list[str] | None
    threads: int
    async_slots: int
    running: int
    memory: int = Field(description="In bytes.")
    age: float
    lease: float = Field(description="Seconds left; negative: lapsed.")
    release: str
    is_alive: bool


class FailureCount(BaseModel):
    """Failed jobs of one type with one error."""

    error_class: str
    job_type: str
    count: int
    last: datetime


class PausedThing(BaseModel):
    """A queue or job type that is not claimed."""

    what: str
    name: str
    by: str
    reason: str


class Queues(BaseModel):
    """Waiting and running jobs."""

    queues: list[Depth]


class Failures(BaseModel):
    """Failures of the last hour."""

    failures: list[FailureCount]


class Status(BaseModel):
    """The state of the job queue."""

    time: datetime
    queues: list[Depth]
    workers: list[Worker]
    failures: list[FailureCount]
    paused: list[PausedThing]


class ProblemDocument(BaseModel):
    """An error (RFC 9457)."""

    type: str = Field(description="A URI that ends in the id.")
    id: str = Field(description="What programs tell problems apart by.")
    title: str
    status: int
    detail: str
    instance: str = Field(description="The path of the request.")


def job_id(id: UUID) -> str:
    """The id of a job as the API writes it."""
    return f"job_{id}"
