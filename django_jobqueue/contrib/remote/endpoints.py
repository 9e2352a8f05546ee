"""The endpoints, those in the settings here and those that have jobs: how they answer,
and their list below the workers of ``jobqueue workers``, with the keys of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from django_jobqueue.conf import conf
from django_jobqueue.contrib.remote import endpoint_rows
from django_jobqueue.contrib.remote.endpoint_answers import MINUTES, AnswerClass
from django_jobqueue.domain.states import WorkerState
from django_jobqueue.logs import one_line
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.text import numbers, timezones
from django_jobqueue.text.json_reading import read_json
from django_jobqueue.text.redaction import mask_text
from django_jobqueue.verbs.columns import (
    NUMBER,
    RIGHT,
    SPAN,
    Column,
    Listing,
    MoreRows,
    Type,
    always,
    only_json,
)


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

    @property
    def age(self) -> str:
        """The time since it, for people."""
        return numbers.span((timezones.now() - self.at).total_seconds())

    @property
    def in_words(self) -> str:
        """The answer, when it came, and to whom."""
        return f"{self.label}, {self.age} ago, seen by {self.worker}"


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


def read() -> Sequence[EndpointState]:
    """All of them, by name, in one statement."""
    db = DjangoDatabase()
    rows = {
        name: EndpointState(
            name, id, host_of(name), jobs, oldest, answers_in(read_json(answers), now)
        )
        for id, name, jobs, oldest, answers, now in endpoint_rows.summaries(db)
    }
    new = {name: EndpointState(name, None, host_of(name)) for name in conf.endpoints}
    return [state for _name, state in sorted({**new, **rows}.items())]


def host_of(name: str) -> str | None:
    """Host and port of this endpoint, which is all of its address that is shown. Only
    the settings say it, never a row."""
    endpoint = conf.endpoints.get(name)
    return urlsplit(endpoint.url).netloc.rpartition("@")[2] if endpoint else None


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


JSON: Final = """\
An endpoint has the state "endpoint", and the age of the oldest job that was
handed over to it. Of all others, "endpoint" is null; of these it is {address
(host and port; null if it is not in ENDPOINTS here), last, last_failure,
minutes, answered, failed (of the answers in so many minutes)}. An answer is
null or {class (such as 2xx, timeout or refused), status (of HTTP, or null),
at, seconds, problem, worker}."""


def _last(state: EndpointState, text: Callable[[StoredAnswer], str]) -> str | None:
    return None if state.answers.last is None else text(state.answers.last)


def _failed_lately(state: EndpointState) -> str | None:
    counts = state.answers.failed, state.answers.answered
    return " of ".join(map(numbers.number, counts)) if counts[1] else None


def _last_failure(state: EndpointState) -> str | None:
    failure = state.answers.last_failure
    if failure is None:
        return None
    return one_line(f"{failure.in_words}: {failure.problem}".removesuffix(": "))


ENDPOINTS: Final = MoreRows(
    Listing(
        (
            *only_json("id"),
            Column("name", "Endpoint", breaks=True),
            Column(
                "", "Address", Type(str, none="not in ENDPOINTS here"), "host", cut=True
            ),
            Column("remote", value=always(True)),
            Column("state", value=always(WorkerState.ENDPOINT.value)),
            Column("asked_to", value=always("")),
            Column("running", "Handed over", NUMBER, "jobs"),
            Column("threads", value=always(0)),
            Column("async_slots", value=always(0)),
            Column("memory", value=always(0)),
            Column("age", value="oldest"),
            Column("", "Oldest", SPAN, lambda one: one.oldest if one.jobs else None),
            Column("release", value=always("")),
            Column("queues", value=always(None)),
            Column("lease", value=always(None)),
            Column("endpoint", value=answers_object),
            Column("", "Last answer", value=lambda one: _last(one, lambda a: a.label)),
            Column(
                "",
                "Took",
                RIGHT,
                lambda one: _last(one, lambda a: numbers.run_time(a.seconds)),
            ),
            Column("", "Ago", RIGHT, lambda one: _last(one, lambda a: a.age)),
            Column("", "Failed lately", RIGHT, _failed_lately),
            Column("", "Last failure", value=_last_failure, cut=True),
        )
    ),
    read,
    JSON,
)
