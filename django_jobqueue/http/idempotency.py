"""The header Idempotency-Key: the same request with the same key acts once."""

from __future__ import annotations

import re
from typing import Final
from uuid import UUID, uuid5

from django.http import HttpRequest

from django_jobqueue.http.access import caller_of
from django_jobqueue.http.problems import Problem

LONGEST_KEY: Final = 255  # characters of an idempotency key
KEY: Final = "^[!-~]([ -~]*[!-~])?$"  # servers strip the spaces around a header
# Of ids that are made of a caller and a key; it must never change.
NAMESPACE: Final = UUID("5a0b1f8e-2f4c-5d0e-9a51-6b7f0c9d3e21")
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
    parts = [caller_of(request).name, *map(str, about), key]
    return uuid5(NAMESPACE, "\n".join(parts))
