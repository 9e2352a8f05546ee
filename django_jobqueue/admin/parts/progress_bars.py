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


def reports_of(jobs: Iterable[Any]) -> dict[UUID, Report]:
    """The reports of the running attempts, by job; one query if any of them runs."""
    fences = {job.pk: job.fence for job in jobs if job.status == QueuedStatus.RUNNING}
    if not fences:
        return {}
    reports = Report.objects.latest_for(fences).only(
        "job_id", "fence", "done", "total", "note"
    )
    return {
        report.job_id: report
        for report in reports
        if report.fence == fences[report.job_id]
    }


def bar_cell(report: Report | None) -> list[SafeString]:
    """A small bar and the note, if there are any."""
    if report is None:
        return []
    percent = numbers.whole_percent(report.done, report.total)
    text = numbers.done_text(report.done, report.total)
    note = display.shown_text(report.note, display.CELL)
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
