"""Delivers jobs to endpoints, the handler of every ``remote_job(endpoint=…)``; and
tells them that a job which they have is not wanted any more."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from uuid import UUID

from django.urls import NoReverseMatch, reverse

from django_jobqueue.conf import conf
from django_jobqueue.conf.endpoints import Endpoint
from django_jobqueue.contrib.remote import clients
from django_jobqueue.contrib.remote.answers import (
    BUSY,
    Answer,
    class_of,
    problem_of,
    result_of,
)
from django_jobqueue.contrib.remote.endpoint_answers import (
    EndpointAnswer,
    endpoint_answers,
)
from django_jobqueue.contrib.remote.endpoint_rows import UntoldCancel
from django_jobqueue.domain.context import Context, current_job
from django_jobqueue.domain.log_events import Event
from django_jobqueue.domain.policy import attempts_left
from django_jobqueue.domain.registry import Declaration
from django_jobqueue.domain.states import Delivery
from django_jobqueue.domain.webhooks import signed
from django_jobqueue.exceptions import NotDelivered, RemoteExtraMissing
from django_jobqueue.execution.attempt_outcome import HandedOver
from django_jobqueue.observers import TRACE
from django_jobqueue.retries import retry_after

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger("django_jobqueue.remote")

BUSY_WAITS: Final = (0.5, 1.0, 2.0)  # seconds before it is tried again after a 503
CALLBACK: Final = "jobqueue_http:end_attempt"
USER_AGENT: Final = "django-jobqueue"
SENDING: Final = ".send_request_headers.started"  # as httpx traces a request
SECRET: Final = ("authorization", "webhook-signature")  # headers

clients.load()


async def deliver(declaration: Declaration) -> Any:
    """Send the job that runs here to its endpoint; return the result.

    Raises NotDelivered if nothing was sent, HandedOver if the job arrived or may have
    arrived, and what ``result_of`` raises.
    """
    context = current_job()
    endpoint = endpoint_of(declaration.endpoint)
    url = url_of(endpoint, declaration, context.id)
    body = json.dumps(body_of(context), separators=(",", ":")).encode()
    is_sensitive = bool(declaration.policy.sensitive)
    once = declaration.policy.delivery == Delivery.AT_MOST_ONCE
    # Whoever answers 503 may have begun: a proxy does, when its service is too slow.
    for wait in (None,) if once else (*BUSY_WAITS, None):
        headers = headers_of(endpoint, context.id, body)
        headers |= _trace_of(context.metadata)
        answer = await _post(endpoint, url, headers, body, is_sensitive=is_sensitive)
        if answer.status != BUSY or wait is None or retry_after(answer.headers):
            break
        await asyncio.sleep(wait)
    try:
        return result_of(endpoint.name, answer)
    except HandedOver:
        _log_handed_over(context, endpoint.name, "it was accepted")
        raise


def endpoint_of(name: str) -> Endpoint:
    """The entry of ENDPOINTS. Raises NotDelivered: a deployment may bring it."""
    endpoint = conf.endpoints.get(name)
    if endpoint is None:
        raise NotDelivered(f"JOBQUEUE['ENDPOINTS'] has no {name!r}")
    return endpoint


def url_of(endpoint: Endpoint, declaration: Declaration, id: UUID) -> str:
    """The address of a job. The code names all of it but the id, which is a UUID."""
    type = quote(declaration.name, safe="")
    return endpoint.url + declaration.endpoint_path.format(type=type, id=f"job_{id}")


def headers_of(endpoint: Endpoint, id: UUID, body: bytes) -> dict[str, str]:
    """The headers of a request about a job. Its ``webhook-id`` is that of the job, so
    that a receiver knows what it has done."""
    signature = signed(endpoint.secrets, f"job_{id}", body, datetime.now(UTC))
    own = {
        "accept": "application/json",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "user-agent": USER_AGENT,
    }
    return {**own, **signature}


def body_of(context: Context) -> dict[str, Any]:
    """The body of the request to an endpoint."""
    return {
        "data": context.data,
        "id": f"job_{context.id}",
        "attempts": attempts_left(context.max_attempts, context.attempt),
        "attempt": context.attempt,
        "fence": context.fence,
        "job_type": context.job_type,
        "callback_url": callback_url(context.job_type, context.id),
    }


def callback_url(job_type: str, id: UUID) -> str | None:
    """Where an endpoint says what came of a job; None if SITE_URL is not set, or the
    API is not mounted."""
    if not conf.site_url:
        return None
    try:
        path = reverse(CALLBACK, args=[job_type, f"job_{id}"])
    except NoReverseMatch:
        return None
    return f"{conf.site_url.rstrip('/')}{path}"


async def _post(
    endpoint: Endpoint,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    is_sensitive: bool,
) -> Answer:
    """Send this once. Raises NotDelivered and HandedOver."""
    try:
        client = await clients.client_of(endpoint)
    except RemoteExtraMissing as error:
        raise NotDelivered(str(error)) from None
    import httpx

    was_sent = False

    async def trace(name: str, info: Any) -> None:
        nonlocal was_sent
        was_sent = was_sent or name.endswith(SENDING)

    context = current_job()
    _log_request(url, headers, b"" if is_sensitive else body)
    request = client.build_request(
        "POST", url, headers=headers, content=body, extensions={"trace": trace}
    )
    began = time.monotonic()
    try:
        response = await client.send(request, stream=True)
    except httpx.TransportError as error:
        took = time.monotonic() - began
        problem = problem_of(error, endpoint)
        failure = EndpointAnswer(class_of(error), None, took, problem)
        endpoint_answers.add(endpoint.name, failure)
        reason = f"{type(error).__name__}: {error}".removesuffix(": ")
        if not was_sent:
            text = f"{endpoint.name} could not be reached: {reason}"
            raise NotDelivered(text) from None
        _log_handed_over(context, endpoint.name, f"it may have arrived ({reason})")
        raise HandedOver(endpoint.name) from None
    except asyncio.CancelledError:
        if not was_sent:
            raise
        _log_handed_over(context, endpoint.name, "it may have arrived (we stop)")
        raise HandedOver(endpoint.name) from None
    try:
        answer = await _read(response, endpoint.read_timeout)
    finally:
        await response.aclose()
    took = time.monotonic() - began
    endpoint_answers.add(endpoint.name, EndpointAnswer.of_status(answer.status, took))
    _log_answer(url, answer, b"" if is_sensitive else answer.body)
    return answer


async def _read(response: httpx.Response, seconds: float) -> Answer:
    """Read the answer, as far as it may be kept. The status counts also if the rest
    does not come."""
    import httpx

    limit, body, cut_off = conf.max_result_bytes, bytearray(), ""
    try:
        async with asyncio.timeout(seconds):
            async for part in response.aiter_raw():  # nothing is unpacked
                body += part
                if len(body) > limit:
                    cut_off = f"the answer has more than {limit:,} bytes"
                    break
    except (httpx.HTTPError, TimeoutError, asyncio.CancelledError) as error:
        cut_off = f"the answer was cut off ({type(error).__name__})"
    return Answer(response.status_code, response.headers, bytes(body[:limit]), cut_off)


def _trace_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The trace that the job belongs to, if it was enqueued with one."""
    trace = metadata.get(TRACE)
    value = trace.get("traceparent") if isinstance(trace, dict) else None
    if isinstance(value, str) and value.isascii() and value.isprintable():
        return {"traceparent": value}
    return {}


def _log_request(url: str, headers: Mapping[str, str], body: bytes) -> None:
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug("POST %s %s %r", url, _shown(headers), body)


def _log_answer(url: str, answer: Answer, body: bytes) -> None:
    if logger.isEnabledFor(logging.DEBUG):
        headers = _shown(answer.headers)
        logger.debug("%s from %s %s %r", answer.status, url, headers, body)


def _shown(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers without secrets."""
    return {
        name: "…" if name.lower() in (*SECRET, "set-cookie") else value
        for name, value in headers.items()
    }


def _log_handed_over(context: Context, endpoint: str, why: str) -> None:
    logger.info(
        "Job %s (%s) is handed over to %s: %s",
        context.id,
        context.job_type,
        endpoint,
        why,
        extra={"event": Event.ATTEMPT_HANDED_OVER, "endpoint": endpoint},
    )


def send_cancel(declaration: Declaration, cancel: UntoldCancel) -> int:
    """Send ``DELETE`` for the job; return the status of the answer, which changes
    nothing. Raises NotDelivered and RemoteExtraMissing."""
    endpoint = endpoint_of(declaration.endpoint)
    body = json.dumps(
        {
            "id": f"job_{cancel.id}",
            "attempt": cancel.attempt,
            "fence": cancel.fence,
            "job_type": cancel.job_type,
        }
    ).encode()
    url = url_of(endpoint, declaration, cancel.id)
    with clients.sync_client(endpoint) as client:
        import httpx

        headers = headers_of(endpoint, cancel.id, body)
        try:
            with client.stream("DELETE", url, headers=headers, content=body) as answer:
                return int(answer.status_code)
        except httpx.TransportError as error:
            raise NotDelivered(f"{type(error).__name__}: {error}") from None
