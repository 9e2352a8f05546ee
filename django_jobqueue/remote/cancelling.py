"""Tells an endpoint that a job which it has is not wanted any more."""

from __future__ import annotations

import json

from django_jobqueue.domain.registry import Declaration
from django_jobqueue.exceptions import NotDelivered
from django_jobqueue.remote.clients import sync_client
from django_jobqueue.remote.delivery import endpoint_of, headers_of, url_of
from django_jobqueue.store.endpoint_rows import UntoldCancel


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
    with sync_client(endpoint) as client:
        import httpx

        headers = headers_of(endpoint, cancel.id, body)
        try:
            with client.stream("DELETE", url, headers=headers, content=body) as answer:
                return int(answer.status_code)
        except httpx.TransportError as error:
            raise NotDelivered(f"{type(error).__name__}: {error}") from None
