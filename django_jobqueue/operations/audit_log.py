"""Every verb of an operator is told: a line in the log, the signal ``operated``, and a
row of the audit if somebody is named."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from django_jobqueue import signals
from django_jobqueue.conf import conf
from django_jobqueue.domain.log_events import Event
from django_jobqueue.store import audit
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.text.redaction import MASK

logger = logging.getLogger("django_jobqueue.operations")

MOST_OBJECTS: Final = 100  # of an act that are kept
MOST_NAMES: Final = 10  # of a list in the details that are kept
LONGEST: Final = 500  # characters of a text in the details that are kept
# Details that name what an act was about.
OBJECTS: Final = (
    "id",
    "job_type",
    "job_types",
    "queues",
    "schedule",
    "schedules",
    "workers",
    "hosts",
    "leases",
    "limit",
    "token",
    "tokens",
    "fingerprints",
    "operation",
    "erasure",
    "search",
)


def record(
    verb: str,
    by: str,
    count: int,
    details: dict[str, Any],
    *,
    private: Mapping[str, Any] | None = None,
    ids: Iterable[object] = (),
    using: str | None = None,
) -> None:
    """Write the log line, send the signal, and keep the act if somebody is named and
    something came of it.

    The act is kept in the caller's transaction. ``ids`` are those of the jobs that it
    was about, where the details do not say; ``private`` are details that come from data
    of jobs: the audit alone has them, whose page hides them from who may not see them.
    """
    stored = {**details, **(private or {})}
    details = {**details, **dict.fromkeys(private or (), MASK)}
    logger.info(
        "%s: %d by %s %s",
        verb,
        count,
        by or "code",
        details,
        extra={
            "event": Event.OPERATED,
            "verb": verb,
            "by": by,
            "count": count,
            **_prefixed(details),
        },
    )
    if by and count and conf.mode == "queue":
        about = list(dict.fromkeys([*map(str, ids), *_objects(details)]))
        audit.add(
            DjangoDatabase(using),
            verb=verb,
            by=by,
            count=count,
            about=json.dumps(about[:MOST_OBJECTS]),
            details=json.dumps(_short(stored), default=str),
        )
    signals.send(signals.operated, verb, verb=verb, by=by, count=count, details=details)


def _objects(details: dict[str, Any]) -> Iterator[str]:
    for name in OBJECTS:
        value = details.get(name)
        if isinstance(value, list | tuple):
            yield from map(str, value)
        elif value:
            yield str(value)


def _short(details: dict[str, Any]) -> dict[str, Any]:
    """The details that are worth a column of a page."""
    return {
        name: _cut(value)
        for name, value in details.items()
        if name not in OBJECTS and value not in ("", None)
    }


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value[:LONGEST]
    if isinstance(value, list | tuple):
        return list(value[:MOST_NAMES])
    return value


def _prefixed(details: dict[str, Any]) -> dict[str, Any]:
    return {f"job_{name}": value for name, value in details.items()}
