"""Says why there was no answer of an endpoint, without its secrets."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Final

from django_jobqueue.conf.endpoints import Endpoint
from django_jobqueue.domain.endpoint_answers import AnswerClass
from django_jobqueue.text.sanitizing import clean

LONGEST: Final = 300  # bytes
# What httpx has, by the names of its classes, since the extra may not be installed.
_REPEATS_THE_ANSWER: Final = ("ProtocolError", "DecodingError")
_BEFORE_IT_WAS_SENT: Final = ("ConnectError", "ProxyError", "UnsupportedProtocol")


def class_of(error: BaseException) -> AnswerClass:
    """What failed, by the errors that caused this one of httpx."""
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
    """What failed, as the error says, and nothing of what the endpoint sent."""
    name = type(error).__name__
    if name.endswith(_REPEATS_THE_ANSWER):
        return name
    secrets = [*endpoint.secrets, *(endpoint.auth or ())]
    return clean(f"{name}: {error}".removesuffix(": "), LONGEST, secrets)


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
