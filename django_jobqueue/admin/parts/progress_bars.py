"""How far running jobs are, in a cell of a list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.utils.html import format_html
from django.utils.safestring import SafeString

from django_jobqueue.admin.parts import display
from django_jobqueue.domain.states import QueuedStatus
from django_jobqueue.models import Report
from django_jobqueue.text import numbers


def told_by(jobs: Iterable[Any]) -> dict[UUID, Report]:
    """The reports of the running attempts, by job; one query if any of them runs."""
    fences = {job.pk: job.fence for job in jobs if job.status == QueuedStatus.RUNNING}
    if not fences:
        return {}
    reports = Report.objects.latest_for(fences).only(
        "job_id", "fence", "done", "total", "note"
    )
    return {told.job_id: told for told in reports if told.fence == fences[told.job_id]}


def bar_cell(told: Report | None) -> list[SafeString]:
    """A small bar and the note, if there are any."""
    if told is None:
        return []
    percent = numbers.whole_percent(told.done, told.total)
    text = numbers.done_text(told.done, told.total)
    note = display.shown_text(told.note, display.CELL)
    cells = []
    if percent is not None:
        cells.append(
            format_html(
                '<progress class="jq-bar" max="100" value="{}" title="{}"'
                ' aria-label="{}"></progress>',
                percent,
                text,
                text,
            )
        )
    elif text:
        cells.append(display.short(text))
    if note:
        cells.append(format_html('<span class="jq-quiet">{}</span>', note))
    return cells
