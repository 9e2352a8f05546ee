"""Endpoints among the workers: what they have, and how they answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, NamedTuple

from django.template import Context
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from django_jobqueue.admin.parts import display
from django_jobqueue.admin.workers.worker_summary import Lines, RowPage, held_jobs
from django_jobqueue.conf import conf
from django_jobqueue.contrib.remote import endpoints
from django_jobqueue.contrib.remote.endpoints import (
    EndpointState,
    StoredAnswer,
    StoredAnswers,
)
from django_jobqueue.domain.registry import registry
from django_jobqueue.models import Worker
from django_jobqueue.text import numbers, timezones

TEMPLATE: Final = "admin/jobqueue_remote/endpoints.html"
LONGEST: Final = 200  # characters of what failed


class EndpointLine(NamedTuple):
    """An endpoint in the table above the workers."""

    name: Any
    host: Any
    jobs: str
    oldest: str
    last: Any
    lately: Any
    failure: Any


def above(context: Context) -> str:
    """The table of all endpoints, above the workers; in one query."""
    changelist = context.get("cl")
    if changelist is None or changelist.model is not Worker:
        return ""
    assert context.template is not None  # it renders
    template = context.template.engine.get_template(TEMPLATE)
    lines = [_line(state) for state in endpoints.read()]
    return template.render(context.new({"lines": lines, "request": context["request"]}))


def _summary(worker: Worker) -> Lines:
    jobs = held_jobs(worker)
    return [
        *_settings_lines(worker, jobs["count"]),
        (_("Handed over"), numbers.number(jobs["count"])),
        (_("Oldest"), display.full_moment(jobs["oldest"])),
        *_answer_lines(worker),
    ]


def _job_types(worker: Worker) -> tuple[list[str], str]:
    """Those that the code here sends it."""
    names = [one.name for one in registry if one.endpoint == worker.name]
    if not names:
        return names, _("The code of this site sends it no jobs.")
    text = ngettext(
        "The code of this site sends it jobs of %(number)s job type.",
        "The code of this site sends it jobs of %(number)s job types.",
        len(names),
    )
    return names, text % {"number": numbers.number(len(names))}


PAGE: Final = RowPage(
    gettext_lazy("View endpoint"), gettext_lazy("Handed over"), _summary, _job_types
)


def _settings_lines(worker: Worker, jobs: int) -> Lines:
    """The settings here of an endpoint with this many jobs, on its page."""
    endpoint = conf.endpoints.get(worker.name)
    lines = [(_("Address"), _host(endpoints.host_of(worker.name), jobs))]
    if endpoint is None:
        return lines
    timeouts = _("%(connect)s to connect, %(read)s to answer") % {
        "connect": numbers.length(timedelta(seconds=endpoint.connect_timeout)),
        "read": numbers.length(timedelta(seconds=endpoint.read_timeout)),
    }
    concurrency = _("unlimited")
    if endpoint.concurrency is not None:
        count = numbers.number(endpoint.concurrency)
        concurrency = _("%(count)s of each job type") % {"count": count}
    return [*lines, (_("Time limits"), timeouts), (_("Concurrency"), concurrency)]


def _answer_lines(worker: Worker) -> Lines:
    """How an endpoint answers, on its page."""
    answers = endpoints.answers_in(worker.answers, timezones.now().timestamp())
    return [
        (_("Last answer"), _answer(answers.last)),
        (_("Last 15 minutes"), _lately(answers)),
        (_("Last failure"), _failure(answers.last_failure)),
    ]


def _line(state: EndpointState) -> EndpointLine:
    name = display.visible(state.name)
    return EndpointLine(
        name=name if state.id is None else display.link("worker", state.id, name),
        host=_host(state.host, state.jobs),
        jobs=numbers.number(state.jobs),
        oldest=numbers.span(state.oldest) if state.jobs else display.NOTHING,
        last=_answer(state.answers.last),
        lately=_lately(state.answers),
        failure=_failure(state.answers.last_failure),
    )


def _host(host: str | None, jobs: int) -> Any:
    """Host and port, or that there are none: an alarm as long as it has jobs, since the
    row of an endpoint stays when its settings are gone."""
    if host is not None:
        return display.visible(host)
    text = _("not in ENDPOINTS here")
    return display.pill("warned", text) if jobs else text


def _answer(answer: StoredAnswer | None) -> Any:
    """The status or what failed, when, and how long it took."""
    if answer is None:
        return display.NOTHING
    pill = display.pill("failed" if answer.has_failed else "succeeded", answer.label)
    took = _("took %(time)s") % {"time": numbers.run_time(answer.seconds)}
    first = format_html("{} {}", pill, display.short(took))
    return display.lines([first, display.moment(answer.at)])


def _failure(answer: StoredAnswer | None) -> Any:
    """The same of a failure, with what the worker knows of it."""
    if answer is None:
        return display.NOTHING
    by = _("seen by %(worker)s") % {"worker": display.visible(answer.worker)}
    parts: list[Any] = [
        format_html("{}, {}", answer.label, display.short(by)),
        display.moment(answer.at),
    ]
    if answer.problem:
        parts.append(display.shown_text(answer.problem, LONGEST))
    return display.lines(parts)


def _lately(answers: StoredAnswers) -> Any:
    if not answers.answered:
        return display.NOTHING
    text = pgettext("requests", "%(failed)s of %(count)s failed") % {
        "failed": numbers.number(answers.failed),
        "count": numbers.number(answers.answered),
    }
    if not answers.failed:
        return text
    return display.pill("failed" if answers.fails_always else "warned", text)
