"""The endpoints: those in the settings here and those that have jobs, and how they
answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django_jobqueue.conf import conf
from django_jobqueue.conf.endpoints import Endpoint
from django_jobqueue.domain.endpoint_answers import MINUTES, AnswerClass
from django_jobqueue.store import endpoint_rows
from django_jobqueue.store.connection import Database, DjangoDatabase
from django_jobqueue.text.json_reading import read_json
from django_jobqueue.text.redaction import mask_text


class StoredAnswer(NamedTuple):
    """An answer to a request with a job, or what there was instead."""

    answer_class: AnswerClass
    status: int | None  # of HTTP
    at: datetime
    seconds: float  # that it took
    problem: str  # why there was no answer
    worker: str  # that sent the request

    @property
    def has_failed(self) -> bool:
        """True unless it was a success."""
        return self.answer_class is not AnswerClass.SUCCESS

    @property
    def label(self) -> str:
        """The status, or what failed."""
        return str(self.answer_class.label if self.status is None else self.status)


class StoredAnswers(NamedTuple):
    """The answers in the row of an endpoint."""

    last: StoredAnswer | None = None
    last_failure: StoredAnswer | None = None
    answered: int = 0  # in the last 15 minutes
    failed: int = 0  # of these

    @property
    def fails_always(self) -> bool:
        """True if nothing succeeded lately."""
        return 0 < self.answered == self.failed


class EndpointState(NamedTuple):
    """An endpoint now."""

    name: str
    id: int | None  # of its row; None before a worker with it has started
    host: str | None  # and port; None if the settings here do not have it
    jobs: int = 0  # that were handed over to it
    oldest: float = 0.0  # seconds since the oldest of them was claimed
    answers: StoredAnswers = StoredAnswers()

    @property
    def is_missing(self) -> bool:
        """True if it has jobs but is missing in the settings here."""
        return self.host is None and self.jobs > 0


def read(db: Database | None = None) -> Sequence[EndpointState]:
    """All of them, by name, in one statement."""
    rows = {
        row.name: EndpointState(
            row.name,
            row.id,
            host_of(row.name),
            row.jobs,
            row.oldest,
            answers_in(read_json(row.answers), row.now),
        )
        for row in endpoint_rows.summaries(db or DjangoDatabase())
    }
    new = {
        name: EndpointState(name, None, host_of(name))
        for name in conf.endpoints
        if name not in rows
    }
    return [state for _name, state in sorted({**rows, **new}.items())]


def host_of(name: str) -> str | None:
    """The host and port of this endpoint, which is all of its address that is shown.
    Only the settings say it, never a row."""
    endpoint = conf.endpoints.get(name)
    return None if endpoint is None else shown_host(endpoint)


def shown_host(endpoint: Endpoint) -> str:
    """Host and port of its address."""
    return urlsplit(endpoint.url).netloc.rpartition("@")[2]


def answers_object(state: EndpointState) -> dict[str, Any]:
    """How an endpoint answers, as programs get it from the command and the HTTP API."""
    answers = state.answers
    return {
        "address": state.host,
        "last": _answer_object(answers.last),
        "last_failure": _answer_object(answers.last_failure),
        "minutes": MINUTES,
        "answered": answers.answered,
        "failed": answers.failed,
    }


def _answer_object(answer: StoredAnswer | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    return {
        "class": answer.answer_class.value,
        "status": answer.status,
        "at": answer.at,
        "seconds": answer.seconds,
        "problem": mask_text(answer.problem),
        "worker": answer.worker,
    }


def answers_in(value: Any, now: float) -> StoredAnswers:
    """Read the answers in a row, leaving out invalid ones; ``now`` is in seconds since
    1970."""
    stored = value if isinstance(value, dict) else {}
    first = int(now // 60) - MINUTES
    answered = failed = 0
    minutes = stored.get("minutes")
    for minute, counts in minutes.items() if isinstance(minutes, dict) else ():
        match counts:
            case [int(more), int(of_these)] if minute.isdigit() and int(minute) > first:
                answered, failed = answered + more, failed + of_these
    last, last_failure = (
        _answer(stored.get("last")),
        _answer(stored.get("last_failure")),
    )
    return StoredAnswers(last, last_failure, answered, failed)


def _answer(value: Any) -> StoredAnswer | None:
    if not isinstance(value, dict):
        return None
    status = value.get("status")
    try:
        return StoredAnswer(
            AnswerClass(str(value.get("class"))),
            status if isinstance(status, int) else None,
            datetime.fromtimestamp(float(value["at"]), UTC),
            float(value.get("seconds", 0.0)),
            str(value.get("problem", "")),
            str(value.get("worker", "")),
        )
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None
