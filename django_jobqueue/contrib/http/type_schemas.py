"""Bodies about job types."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, StrictInt, model_validator

from django_jobqueue.conf import GREATEST
from django_jobqueue.contrib.http.schemas import (
    Attempts,
    Body,
    Name,
    Priority,
    Seconds,
    Text,
)


class JobType(BaseModel):
    """A job type and its policy in force."""

    id: str = Field(description="The same as the name.")
    name: str
    delivery_strategy: Literal["at_least_once", "at_most_once"]
    attempts: int | None = Field(description="Of each job; null is unlimited.")
    concurrency: int | None = Field(
        description="How many of its jobs run at once; null is unlimited."
    )
    queue: str
    priority: int
    timeout: float | None = Field(description="In seconds; null is no limit.")
    is_paused: bool
    description: str
    created_at: datetime


class JobTypes(BaseModel):
    """Job types."""

    job_types: list[JobType]
    cursor: str | None = Field(description="Of the next page; null after the last.")


class NewJobType(Body):
    """A job type that remote workers do."""

    name: Name | None = Field(None, description="Needed unless there is `id`.")
    id: Name | None = Field(None, description="Another word for `name`.")
    delivery_strategy: Literal["at_least_once", "at_most_once"] = "at_least_once"
    attempts: Attempts | None = Field(None, description="Of each job.")
    concurrency: Annotated[StrictInt, Field(ge=1, le=GREATEST)] | None = Field(
        None, description="How many of its jobs run at once; null is unlimited."
    )
    queue: Name | None = None
    priority: Priority | None = Field(None, description="Greater is sooner.")
    timeout: Seconds | None = Field(None, description="Of an attempt, in seconds.")
    description: Text = Field("", max_length=300)

    @model_validator(mode="after")
    def _has_one_name(self) -> Self:
        if self.name is None and self.id is None:
            raise ValueError("name: field required")
        if self.name and self.id and self.name != self.id:
            raise ValueError("name and id are two words for one thing")
        return self

    @property
    def key(self) -> str:
        """The name, whichever word it has."""
        return self.name or self.id or ""

    def options(self) -> dict[str, Any]:
        """The options that are given, by their names in Python."""
        values = {
            "delivery": self.delivery_strategy,
            "max_attempts": self.attempts,
            "concurrency": self.concurrency,
            "queue": self.queue,
            "priority": self.priority,
            "timeout": self.timeout,
        }
        return {name: value for name, value in values.items() if value is not None}
