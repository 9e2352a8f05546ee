"""The states of failure groups now, from decisions, time and new failures."""

from __future__ import annotations

from typing import Final

from django.db.models import Q

from django_jobqueue.domain.states import GroupState
from django_jobqueue.models import FailureGroup
from django_jobqueue.models.fields import ClockTimestamp
from django_jobqueue.text import timezones

_IGNORED_NOW = Q(state=GroupState.IGNORED) & (
    Q(ignored_until=None) | Q(ignored_until__gt=ClockTimestamp())
)
# An ignored group whose time is over is open again; nothing has to be written for it.
_OPEN_NOW = Q(state=GroupState.OPEN) | Q(
    state=GroupState.IGNORED, ignored_until__lte=ClockTimestamp()
)

STATES: Final = {
    "open": _OPEN_NOW,
    "regressed": _OPEN_NOW & Q(regressed_at__isnull=False),
    "resolved": Q(state=GroupState.RESOLVED),
    "ignored": _IGNORED_NOW,
}


def state_now(group: FailureGroup) -> str:
    """The state of a group at this moment."""
    until = group.ignored_until
    over = until is not None and until <= timezones.now()
    if group.state == GroupState.OPEN or (group.state == GroupState.IGNORED and over):
        return "regressed" if group.regressed_at is not None else "open"
    return str(group.state)
