"""Finished jobs of the last 24 hours, by job type or by queue."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.utils.html import format_html
from django.utils.translation import gettext as _

from django_jobqueue.admin.parts import display
from django_jobqueue.conf import conf
from django_jobqueue.stats.totals import Line
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import history
from django_jobqueue.store.reading.history import Counts
from django_jobqueue.text import numbers, timezones


def last_day(job_types: Iterable[str]) -> dict[str, Line]:
    """A line for each of these job types that had something."""
    by_name: dict[str, Line] = {}
    for recent in history.since(DjangoDatabase(), _start(), list(job_types)):
        by_name.setdefault(recent.job_type, Line(recent.job_type)).add(recent)
    return by_name


def last_day_of_types(queue: str) -> dict[str, Counts]:
    """The numbers of the jobs of this queue, by job type."""
    counts = history.counts(DjangoDatabase(), _start())
    return {
        job_type: one
        for (job_type, in_queue), one in counts.items()
        if in_queue == queue
    }


def last_day_of_queues() -> dict[str, Counts]:
    """The numbers of all jobs, by queue."""
    by_queue: dict[str, Counts] = {}
    for (_job_type, queue), one in history.counts(DjangoDatabase(), _start()).items():
        by_queue.setdefault(queue, Counts()).add(one)
    return by_queue


def _start() -> datetime:
    return timezones.now() - timedelta(days=1)


def finished_cell(line: Line | Counts) -> Any:
    """How many jobs finished, and the share of those that failed. However many did, it
    is past, and not red: the overview says what fails now."""
    if not line.finished:
        return display.NOTHING
    text = _("%(share)s failed") % {"share": numbers.percent(line.failed_share)}
    return display.lines(
        [
            numbers.number(line.finished),
            format_html('<span class="jq-warned">{}</span>', text)
            if 100 * (line.failed_share or 0) > conf.alert_failed
            else text,
        ]
    )
