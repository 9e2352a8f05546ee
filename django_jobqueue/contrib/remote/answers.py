"""Decides what the answer of an endpoint comes to, and says why there was none."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from django_jobqueue.conf.endpoints import Endpoint
from django_jobqueue.contrib.remote.endpoint_answers import AnswerClass
from django_jobqueue.exceptions import EndpointError, Fail, Retry
from django_jobqueue.execution.attempt_outcome import HandedOver
from django_jobqueue.retries import retry_after
from django_jobqueue.text.sanitizing import clean

DETAIL_LENGTH: Final = 2_000  # characters
ACCEPTED: Final = 202
BUSY: Final = 503
RETRIED: Final = (408, 425, 429)  # and all from 500 on


class Answer(NamedTuple):
    """An answer, as far as it was read."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut_off: str = ""  # why its body was not read to the end


def result_of(endpoint: str, answer: Answer) -> Any:
    """The result of a job that is done.

    Raises HandedOver if the endpoint goes on with it, Retry and EndpointError for an
    answer after which the job is tried again, and Fail for any other.
    """
    if answer.status == ACCEPTED:
        raise HandedOver(endpoint)
    if 200 <= answer.status < 300:
        return _result(answer)
    error = EndpointError(_message(endpoint, answer), answer.status)
    if answer.status < 500 and answer.status not in RETRIED:
        raise Fail(str(error)) from error
    wait = retry_after(answer.headers)
    if wait is None:
        raise error
    holds = _object(answer).get("hold") is True
    raise Retry(str(error), after=wait, hold=holds) from error


def _result(answer: Answer) -> Any:
    """The result in the body; None if it has none."""
    if answer.cut_off:
        return {"not_kept": answer.cut_off}
    try:
        body = json.loads(answer.body)
    except (ValueError, RecursionError):
        is_json = answer.body and "json" in answer.headers.get("content-type", "")
        return {"not_kept": "its JSON cannot be read"} if is_json else None
    return body.get("result") if isinstance(body, dict) else None


def _message(endpoint: str, answer: Answer) -> str:
    detail = _object(answer).get("detail")
    detail_text = f": {detail}" if isinstance(detail, str) and detail else ""
    return clean(f"{endpoint} answered {answer.status}{detail_text}", DETAIL_LENGTH)


def _object(answer: Answer) -> dict[str, Any]:
    """The JSON object in the body; empty if it has none."""
    if answer.cut_off:
        return {}
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


MOST_BYTES: Final = 300  # of a problem
# What httpx has, by the names of its classes, since the extra may not be installed.
_REPEATS_THE_ANSWER: Final = ("ProtocolError", "DecodingError")
_BEFORE_IT_WAS_SENT: Final = ("ConnectError", "ProxyError", "UnsupportedProtocol")


def class_of(error: BaseException) -> AnswerClass:
    """The failure, by the errors that caused this one of httpx."""
    if type(error).__name__.endswith("Timeout"):
        return AnswerClass.TIMEOUT
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError):
            return AnswerClass.TLS
        if isinstance(cause, socket.gaierror):
            return AnswerClass.NO_NAME
        if isinstance(cause, ConnectionRefusedError):
            return AnswerClass.REFUSED
    is_unsent = type(error).__name__ in _BEFORE_IT_WAS_SENT
    return AnswerClass.UNREACHABLE if is_unsent else AnswerClass.BROKEN


def problem_of(error: BaseException, endpoint: Endpoint) -> str:
    """The failure in the error's words, without anything that the endpoint sent."""
    name = type(error).__name__
    if name.endswith(_REPEATS_THE_ANSWER):
        return name
    secrets = [*endpoint.secrets, *(endpoint.auth or ())]
    return clean(f"{name}: {error}".removesuffix(": "), MOST_BYTES, secrets)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and what it was raised from. Those of an attempt at several addresses
    are in a group."""
    seen: set[int] = set()
    left = [error]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup):
            left += one.exceptions
        left += [one.__cause__, one.__context__]
