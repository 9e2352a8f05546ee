"""The life of one job as a line: created, due, each attempt, the end."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.utils.translation import gettext as _

from django_jobqueue.admin.jobs.job_attempts import Attempts, Run
from django_jobqueue.admin.parts import display
from django_jobqueue.text import numbers

MOST_RUNS: Final = 8
AT_ONCE: Final = timedelta(seconds=1)  # between creation and due, no wait was meant


class Step(NamedTuple):
    """A point of the timeline."""

    label: str
    at: datetime
    note: str = ""
    style: str = ""  # of the pill, if it is an end

    @property
    def when(self) -> Any:
        """The time, for the page."""
        return display.exact_moment(self.at)


def timeline(
    job: Any, steps: Iterable[Step], attempts: Attempts, end: Step | None = None
) -> list[Step]:
    """The life of a job from its creation on, in the order in which it went.

    A job is created before it is due, whatever the moments say: they are read from the
    clock one after the other, and a job may be due in the past. Nothing comes after the
    end.
    """
    runs = list(reversed(attempts.runs[:MOST_RUNS]))
    if attempts.first is not None:
        runs.insert(0, Run([attempts.first]))
    both = zip(runs, [None, *runs], strict=False)
    created, *due = _beginning(job, end)
    ordered = [*due, *steps, *(_step(run, earlier) for run, earlier in both)]
    ordered.sort(key=lambda step: step.at)
    return [created, *ordered, *([end] if end else [])]


def _beginning(job: Any, end: Step | None) -> list[Step]:
    """When it was created, and when it was due if that was later."""
    early = job.created_at - job.run_after
    created = _("created")
    if abs(early) < AT_ONCE:
        return [Step(created, job.created_at, _("due at once"))]
    if early >= AT_ONCE:
        text = _("due since %(moment)s")
    elif end is not None and job.run_after > end.at:
        text = _("due %(moment)s")
    else:
        return [Step(created, job.created_at), Step(_("due"), job.run_after)]
    moment = {"moment": display.exact(job.run_after)}
    return [Step(created, job.created_at, text % moment)]


def _step(run: Run, earlier: Run | None) -> Step:
    oldest = run.oldest
    at = oldest.started_at or oldest.finished_at
    assert at is not None
    text = _("attempts %(numbers)s") if run.is_range else _("attempt %(numbers)s")
    parts = [run.newest.end]
    if run.is_several:
        parts.append(run.summary)
    elif oldest.ran_ms is not None:
        parts.append(_("ran %(span)s") % {"span": oldest.ran})
    if earlier is not None and earlier.newest.finished_at is not None:
        waited = (at - earlier.newest.finished_at).total_seconds()
        if waited > 0:
            parts.append(
                _("%(span)s after the one before") % {"span": numbers.run_time(waited)}
            )
    return Step(
        text % {"numbers": run.numbers}, at, " · ".join(parts), run.newest.style
    )
