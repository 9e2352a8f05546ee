"""Checks the conditions again and again, and lets alerts fire and resolve."""

from __future__ import annotations

from collections import Counter, deque
from typing import Final

from django_jobqueue.contrib.alerts import alert_conditions
from django_jobqueue.contrib.alerts.alert_conditions import HeldCondition
from django_jobqueue.stats import conditions
from django_jobqueue.store.connection import OwnConnection

REMEMBERED: Final = 3  # checks
CONFIRMED_BY: Final = 2  # of these; so a moment's trouble alerts nobody


class ConditionWatch:
    """The last checks of the process that holds the lease of the alerts."""

    def __init__(self, connection: OwnConnection) -> None:
        self._connection = connection
        self._checks: deque[frozenset[tuple[str, str]]] = deque(maxlen=REMEMBERED)

    def check(self) -> None:
        """Judge the job queue, and record what fires and what is over."""
        judgement = conditions.read(self._connection)
        self._checks.append(frozenset(one.key for one in judgement.conditions))
        times = Counter(key for keys in self._checks for key in keys)
        held = [
            HeldCondition(*one.key, one.text, times[one.key] >= CONFIRMED_BY)
            for one in judgement.conditions
        ]
        alert_conditions.fire(self._connection, held)
        if len(self._checks) == REMEMBERED:
            alert_conditions.resolve(self._connection, times, judgement.undecided)

    def forget(self) -> None:
        """Another process may have checked meanwhile."""
        self._checks.clear()
