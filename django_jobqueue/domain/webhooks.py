"""Signs what is sent to other programs."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import datetime

from django_jobqueue.conf.alert_channels import secret_bytes


def signed(
    secrets: tuple[str, ...], id: str, body: bytes, now: datetime
) -> dict[str, str]:
    """The headers of Standard Webhooks: https://www.standardwebhooks.com/. While
    secrets are changed there are several signatures."""
    timestamp = str(int(now.timestamp()))
    content = f"{id}.{timestamp}.".encode() + body
    signatures = [
        base64.b64encode(
            hmac.new(secret_bytes(secret), content, hashlib.sha256).digest()
        ).decode()
        for secret in secrets
    ]
    headers = {"webhook-id": id, "webhook-timestamp": timestamp}
    if signatures:
        headers["webhook-signature"] = " ".join(f"v1,{one}" for one in signatures)
    return headers
