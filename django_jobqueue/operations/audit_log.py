"""Every verb of an operator is told: a line in the log, and the signal ``operated``."""

from __future__ import annotations

import logging
from typing import Any

from django_jobqueue import signals

logger = logging.getLogger("django_jobqueue.operations")


def record(verb: str, by: str, count: int, details: dict[str, Any]) -> None:
    """Write the log line, and send the signal."""
    logger.info(
        "%s: %d by %s %s",
        verb,
        count,
        by or "code",
        details,
        extra={"verb": verb, "by": by, "count": count, **_prefixed(details)},
    )
    signals.send(signals.operated, verb, verb=verb, by=by, count=count, details=details)


def _prefixed(details: dict[str, Any]) -> dict[str, Any]:
    return {f"job_{name}": value for name, value in details.items()}
