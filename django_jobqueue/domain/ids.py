"""Job ids: UUIDv7 (RFC 9562, section 5.7), which sort by the time they were made.

Within a process they also sort by order of making: the twelve bits after the
timestamp count up within one millisecond (RFC 9562, section 6.2, method 1).
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable
from datetime import datetime
from threading import Lock
from typing import Any, Final
from uuid import UUID, uuid5

from django_jobqueue.exceptions import InvalidArguments

Ids = UUID | str | Iterable[UUID | str]

# Of ids that are made of texts. It is in the documentation, and must never change.
NAMESPACE: Final = UUID("f4949a55-c19e-55f5-a8fc-45a292001730")

_VERSION = 0x7 << 76
_VARIANT = 0b10 << 62
_lock = Lock()
_random = random.Random()  # seeded by the system; nobody else can seed it
_last = 0  # milliseconds and the 12-bit counter, as one number that only grows


def _reset_after_fork() -> None:
    """In the child of a fork: another thread may have held the lock at that moment."""
    global _lock
    _lock = Lock()
    _random.seed()


os.register_at_fork(after_in_child=_reset_after_fork)


def new_id() -> UUID:
    """A new id, greater than every one that this process made before."""
    global _last
    now = (time.time_ns() // 1_000_000) << 12
    with _lock:
        _last = stamp = now if now > _last else _last + 1
    tail = _random.getrandbits(62)
    return UUID(
        int=(stamp >> 12) << 80 | _VERSION | (stamp & 0xFFF) << 64 | _VARIANT | tail
    )


def new_ids(count: int) -> list[UUID]:
    """``count`` new ids, in ascending order."""
    return [new_id() for _ in range(count)]


def first_id(moment: datetime) -> UUID:
    """The least id that is made at this moment, which is aware, or later."""
    stamp = int(moment.timestamp() * 1_000)
    return UUID(int=stamp << 80 | _VERSION | _VARIANT)


def as_id(value: UUID | str) -> UUID:
    """The UUID of a job; ``job_<uuid>`` is understood, too. Raises InvalidArguments."""
    if isinstance(value, UUID):
        return value
    try:
        return UUID(value.removeprefix("job_"))
    except (ValueError, AttributeError, TypeError):
        raise InvalidArguments(_no_id(value)) from None


def id_of_text(job_type: str, text: str) -> UUID:
    """The id that stands for this text among the jobs of this type: a UUIDv5 of
    ``job_type:text``, the same wherever and whenever it is made."""
    return uuid5(NAMESPACE, f"{job_type}:{text}")


def keys_of(ids: Ids) -> list[UUID]:
    """These, or this one, as ids. Raises InvalidArguments."""
    return [as_id(id) for id in several(ids)]


def several(values: Any) -> Iterable[Any]:
    """These values; a single one as one of several. A text is single: its letters are
    no names."""
    is_single = isinstance(values, str) or not isinstance(values, Iterable)
    return (values,) if is_single else values


def _no_id(value: object) -> str:
    """Why this is no id. Of objects their class is said: they may have secrets."""
    if isinstance(getattr(value, "id", None), UUID):
        return f"A {type(value).__name__} is not a job id; pass its id."
    return f"{value!r} is not a job id; it must be a UUID."
