"""Finished jobs of the last 24 hours, by job type or by queue."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.utils.html import format_html
from django.utils.translation import gettext as _

from django_jobqueue.admin.parts import display
from django_jobqueue.conf import conf
from django_jobqueue.stats.totals import Line
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import history
from django_jobqueue.store.reading.stats import Recent
from django_jobqueue.text import numbers, timezones


def last_day(key: Callable[[Recent], str]) -> dict[str, Line]:
    """A line for each that had something."""
    start = timezones.now() - timedelta(days=1)
    by_name: dict[str, Line] = {}
    for recent in history.since(DjangoDatabase(), start):
        name = key(recent)
        by_name.setdefault(name, Line(name)).add(recent)
    return by_name


def finished_cell(line: Line) -> Any:
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
