"""The life of one job as a line: created, due, each attempt, the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.utils.translation import gettext as _

from django_jobqueue import formatting
from django_jobqueue.admin.jobs.job_attempts import Attempts, Run
from django_jobqueue.admin.parts import display

MOST_RUNS: Final = 8


@dataclass(frozen=True, slots=True)
class Step:
    """A point of the timeline."""

    label: str
    at: datetime
    note: str = ""
    kind: str = ""  # of the pill, if it is an end

    @property
    def when(self) -> Any:
        """The time, for the page."""
        return display.exact_moment(self.at)


def timeline(steps: Iterable[Step], attempts: Attempts) -> list[Step]:
    """These steps and the attempts, in the order in which they happened."""
    runs = list(reversed(attempts.runs[:MOST_RUNS]))
    if attempts.first is not None:
        runs.insert(0, Run([attempts.first]))
    both = zip(runs, [None, *runs], strict=False)
    found = [*steps, *(_step(run, earlier) for run, earlier in both)]
    return sorted(found, key=lambda step: step.at)


def _step(run: Run, earlier: Run | None) -> Step:
    oldest = run.oldest
    at = oldest.started_at or oldest.finished_at
    assert at is not None
    text = _("attempts %(numbers)s") if run.is_several else _("attempt %(numbers)s")
    parts = [run.newest.end]
    if run.is_several:
        parts.append(run.summary)
    elif oldest.ran_ms is not None:
        parts.append(_("ran %(span)s") % {"span": oldest.ran})
    if earlier is not None and earlier.newest.finished_at is not None:
        waited = (at - earlier.newest.finished_at).total_seconds()
        if waited > 0:
            parts.append(_("%(span)s after the one before") % {"span": _span(waited)})
    return Step(text % {"numbers": run.numbers}, at, " · ".join(parts), run.newest.kind)


def _span(seconds: float) -> str:
    return formatting.duration(round(seconds * 1_000))
