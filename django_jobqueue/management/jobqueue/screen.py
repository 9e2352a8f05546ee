"""The figures as an operator sees them."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from django_jobqueue.conf import conf
from django_jobqueue.logs import one_line
from django_jobqueue.management.jobqueue import status_tables, worker_tables
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.figures import Figures
from django_jobqueue.management.jobqueue.status_tables import Section
from django_jobqueue.management.jobqueue.table import cut, table
from django_jobqueue.management.jobqueue.times import local
from django_jobqueue.stats.notices import notices


class Screen:
    """Draws figures on a console of this width and these colours."""

    def __init__(self, console: Console, figures: Figures) -> None:
        self._figures = figures
        self._width = console.width
        self._style: Any = console.style

    def lines(self) -> list[str]:
        """Everything, section by section, with an empty line between two."""
        figures, style = self._figures, self._style
        parts = (
            self._top(),
            self._notices(),
            self._drawn(status_tables.queues(figures)),
            self._drawn(worker_tables.workers(figures, style)),
            self._drawn(worker_tables.ended(figures, style)),
            self._drawn(status_tables.throughput(figures)),
            self._drawn(status_tables.failures(figures)),
            self._drawn(status_tables.closed(figures, style)),
        )
        lines: list[str] = []
        for part in filter(None, parts):
            lines += ["", *part] if lines else part
        return lines

    def _top(self) -> list[str]:
        zone = timezone.get_current_timezone_name()
        when = f"{local(self._figures.present.time)} {zone}"
        return wrapped(f"Job queue in database {conf.database!r}, {when}", self._width)

    def _notices(self) -> list[str]:
        return [
            self._style.ERROR(line)
            for notice in notices(self._figures.present)
            for line in wrapped(one_line(notice.message), self._width)
        ]

    def _drawn(self, section: Section) -> list[str]:
        heading = self._style.MIGRATE_HEADING(section.title)
        if not section.rows:
            return [f"{heading}: {section.empty}"] if section.empty else []
        bold = self._style.MIGRATE_LABEL
        rows = table(section.columns, section.rows, width=self._width, heading=bold)
        return [heading, *rows]


def wrapped(text: str, width: int | None) -> list[str]:
    """The text in lines of this width."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if width is None or len(longer) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return [cut(line, width) if width else line for line in lines]
