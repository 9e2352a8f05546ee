"""The header Idempotency-Key: the same request with the same key acts once."""

from __future__ import annotations

import json
import re
from typing import Final
from uuid import UUID

from django.http import HttpRequest
from django.utils.crypto import salted_hmac

from django_jobqueue.contrib.http.access import caller_of
from django_jobqueue.contrib.http.callers import identity_of
from django_jobqueue.contrib.http.problems import Problem

LONGEST_KEY: Final = 255  # characters of an idempotency key
KEY: Final = "^[!-~]([ -~]*[!-~])?$"  # servers strip the spaces around a header
SALT: Final = "jobqueue.http.idempotency"
KEY_HEADER: Final = {
    "in": "header",
    "name": "Idempotency-Key",
    "required": False,
    "schema": {"type": "string", "maxLength": LONGEST_KEY, "pattern": KEY},
    "description": "The same request with the same key acts once.",
}


def id_of_key(request: HttpRequest, *about: object) -> UUID | None:
    """The id that the key of the request stands for, with what the request is about;
    None without a key. Raises Problem."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if len(key) > LONGEST_KEY or not re.fullmatch(KEY, key):
        raise Problem(
            "invalid_parameter",
            f"Idempotency-Key must have 1 to {LONGEST_KEY} characters of ASCII.",
        )
    parts = json.dumps([identity_of(caller_of(request)), *map(str, about), key])
    # Nobody else can make this id, and so take it first.
    secret = salted_hmac(SALT, parts, algorithm="sha256").digest()
    return UUID(bytes=secret[:16], version=4)
