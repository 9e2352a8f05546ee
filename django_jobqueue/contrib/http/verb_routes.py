"""The verbs of one job, job type or queue, made of what ``verbs/`` declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, NamedTuple
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Body
from pydantic import BaseModel, Field, create_model

from django_jobqueue.contrib.http import schemas
from django_jobqueue.contrib.http.access import (
    caller_of,
    may_do,
    refused,
    require,
)
from django_jobqueue.contrib.http.endpoint import answer, does
from django_jobqueue.contrib.http.problems import Problem
from django_jobqueue.contrib.http.replay_routes import (
    ONE,
    job_of,
    not_queued,
    shown_job,
)
from django_jobqueue.verbs import jobs, pauses
from django_jobqueue.verbs.declarations import Argument, On, Takes, Verb

VERBS: Final = (
    *(jobs.CANCEL, jobs.RUN_NOW, jobs.FAIL, jobs.RELEASE),
    *(pauses.PAUSE, pauses.RESUME, pauses.PAUSE_QUEUE, pauses.RESUME_QUEUE),
)
TEXT: Final = Annotated[schemas.Text, Field(max_length=1_000)]
TYPES: Final[dict[Takes | str, Any]] = {
    Takes.TEXT: TEXT,
    Takes.MOMENT: schemas.Moment,
    Takes.END: schemas.Moment,
}


class Rows(NamedTuple):
    """What the verbs of a sort are about."""

    path: str
    name: str  # of the part of the path that names a row
    type: Any  # of that part
    tag: str
    answers: type[BaseModel]
    # What the function is called with. Raises Problem where the caller may not do it.
    reach: Callable[[HttpRequest, str], Any]
    shown: Callable[[HttpRequest, Any, Verb], BaseModel]
    problems: Sequence[str] = ()


def _job(request: HttpRequest, id: str) -> UUID:
    return job_of(request, id).id


def _shown_job(request: HttpRequest, id: UUID, verb: Verb) -> BaseModel:
    return shown_job(request, id)


def _job_type(request: HttpRequest, name: str) -> str:
    require(request, job_type=name, queue="*")
    return name


def _queue(request: HttpRequest, name: str) -> str:
    """A queue has jobs of every type."""
    if not may_do(request, "*", name):
        raise refused(request, f"queue {name!r} and every job type")
    return name


def _paused(request: HttpRequest, name: str, verb: Verb) -> BaseModel:
    return schemas.Paused(name=name, is_paused=verb.name == pauses.PAUSE.name)


ROWS: Final = {
    On.QUEUED_JOB: Rows(
        path="/v1/jobs/{id}",
        name="id",
        type=schemas.PathId,
        tag="jobs",
        answers=schemas.Job,
        reach=_job,
        shown=_shown_job,
        problems=(*ONE, "not_queued"),
    ),
    On.JOB_TYPE: Rows(
        path="/v1/jobs/{job_type}",
        name="job_type",
        type=schemas.PathName,
        tag="job types",
        answers=schemas.Paused,
        reach=_job_type,
        shown=_paused,
        problems=("job_type_not_found",),
    ),
    On.QUEUE: Rows(
        path="/v1/queues/{queue}",
        name="queue",
        type=schemas.PathName,
        tag="queues",
        answers=schemas.Paused,
        reach=_queue,
        shown=_paused,
    ),
}


def _register(verb: Verb) -> None:
    rows = ROWS[verb.on]
    arguments = [one for one in verb.arguments if one.group != "filter"]

    def respond(request: HttpRequest, **given: Any) -> HttpResponse:
        row = rows.reach(request, given[rows.name])
        body = given.get("body")
        how = {} if body is None else body.model_dump(exclude_none=True)
        if verb.needs and not any(how.values()):
            names = ", ".join(argument.name for argument in arguments)
            raise Problem("missing_parameter", names)
        done = verb.function(row, **how, by=caller_of(request).name)
        if verb.on is On.QUEUED_JOB and not jobs.changed_ids(done):
            raise not_queued(row)
        return answer(200, rows.shown(request, row, verb), partial=True)

    of_rows = "" if verb.on is On.QUEUED_JOB else f"_{rows.name}"
    respond.__name__ = verb.name.replace("-", "_") + of_rows
    respond.__doc__ = verb.of_one
    parameters = {"request": HttpRequest, rows.name: rows.type}
    if arguments:
        parameters["body"] = Annotated[_body(verb, arguments) | None, Body(None)]
    respond.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=type_)
            for name, type_ in parameters.items()
        ]
    )
    does(
        verb,
        f"{rows.path}/{verb.name}",
        answers={200: rows.answers},
        problems=rows.problems,
        tag=rows.tag,
    )(respond)


def _body(verb: Verb, arguments: Sequence[Argument]) -> type[BaseModel]:
    fields: dict[str, Any] = {
        one.name: (TYPES[one.takes] | None, Field(None, description=one.help))
        for one in arguments
    }
    name = verb.name.title().replace("-", "")
    body: type[BaseModel] = create_model(
        name, __base__=schemas.Body, __doc__=verb.of_one, **fields
    )
    return body


for _verb in VERBS:
    _register(_verb)
