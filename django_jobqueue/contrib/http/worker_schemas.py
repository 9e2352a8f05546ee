"""The list of workers and endpoints."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from django_jobqueue.contrib.http.schemas import Worker


class EndpointAnswer(BaseModel):
    """The answer to a request with a job, or what there was instead of one."""

    answer_class: str = Field(
        alias="class",
        description="`2xx` to `5xx` or `other`, of the status; without an answer "
        "`timeout`, `dns`, `refused`, `tls`, `unreachable` or `broken`.",
    )
    status: int | None = Field(description="Of HTTP; null without an answer.")
    at: datetime
    seconds: float = Field(description="That it took.")
    problem: str = Field(description="Why there was no answer, with secrets masked.")
    worker: str = Field(description="That sent the request.")


class Endpoint(BaseModel):
    """A program that is sent jobs, by its name in the setting ENDPOINTS."""

    name: str
    address: str | None = Field(
        description="Host and port; null if the settings of this site do not have it."
    )
    held_jobs: int = Field(description="That were handed over to it, and are not over.")
    oldest: float | None = Field(
        description="Seconds since the oldest of them was claimed."
    )
    last: EndpointAnswer | None = Field(description="Its last answer.")
    last_failure: EndpointAnswer | None = Field(description="The last but a 2xx.")
    minutes: int = Field(description="That `answered` and `failed` are of.")
    answered: int = Field(description="How many requests with a job there were.")
    failed: int = Field(description="How many of them failed.")


class Workers(BaseModel):
    """Workers, and endpoints, which are none."""

    workers: list[Worker]
    endpoints: list[Endpoint]
