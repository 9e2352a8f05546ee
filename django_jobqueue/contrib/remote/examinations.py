"""Checks of endpoints: how jobs reach them, and how they answer."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from django_jobqueue.conf import conf
from django_jobqueue.contrib.remote import endpoints
from django_jobqueue.contrib.remote.endpoint_answers import MINUTES
from django_jobqueue.contrib.remote.endpoints import EndpointState
from django_jobqueue.stats.findings import Findings, note, ok, problem, shorten_list
from django_jobqueue.text import numbers

ENOUGH: Final = 3  # failures in a row that are more than bad luck


def settings() -> Findings:
    """Check by the settings alone that others cannot read or forge the requests. E003
    and E060 check the settings themselves, and the names of ``remote_job()``."""
    plain = sorted(
        one.name
        for one in conf.endpoints.values()
        if one.url.startswith("http:") and not _is_local(one.url)
    )
    if plain:
        yield note(
            "endpoints-transport",
            f"Jobs are sent without TLS to {shorten_list(plain)}.",
            "Use https, unless the network path is private.",
        )
    else:
        yield ok("endpoints-transport", "No job is sent to an endpoint in the clear.")
    unsigned = sorted(one.name for one in conf.endpoints.values() if not one.secrets)
    if unsigned:
        yield note(
            "endpoints-unsigned",
            f"Requests are not signed for {shorten_list(unsigned)}.",
            'Make a secret with echo "whsec_$(openssl rand -base64 32)", unless the '
            "endpoint has another way to know who sends jobs.",
        )
    else:
        yield ok("endpoints-unsigned", "Every request to an endpoint is signed.")


def rows() -> Findings:
    """Endpoints that have jobs and are not in the settings, and those that fail."""
    states = endpoints.read()
    yield from _missing([one for one in states if one.is_missing])
    known = [one for one in states if one.host is not None]
    failing = [one for one in known if one.answers.last and one.answers.last.has_failed]
    for one in failing:
        yield from _failing(one)
    if not failing:
        yield ok("endpoints-answers", "The last answer of each endpoint was a success.")


def _missing(missing: Sequence[EndpointState]) -> Findings:
    for one in missing:
        jobs = numbers.number(one.jobs)
        yield note(
            "endpoints-missing",
            f"Jobs ({jobs}) were handed over to {one.name}, which is not in "
            "JOBQUEUE['ENDPOINTS'] here.",
            "It can call back, but is not notified of cancels. Add it, or take the "
            "jobs back with operations.release().",
        )
    if not missing:
        text = "Every endpoint that has jobs is in the settings."
        yield ok("endpoints-missing", text)


def _failing(state: EndpointState) -> Findings:
    last, answers = state.answers.last, state.answers
    assert last is not None
    text = f"The last answer of {state.name} was no success: {last.in_words}."
    if answers.answered:
        failed, all_of_them = map(numbers.number, (answers.failed, answers.answered))
        text = (
            f"{text[:-1]}; of the requests of the last {MINUTES} minutes {failed} of "
            f"{all_of_them} failed."
        )
    if answers.fails_always and answers.failed >= ENOUGH:
        advice = "Check that it runs, and read the failures of its jobs."
        yield problem("endpoints-answers", text, advice)
    else:
        yield note("endpoints-answers", text, "Read the failures of its jobs.")


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
