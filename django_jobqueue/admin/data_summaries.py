"""Summaries of job data in lists: ``order 4711``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from django_jobqueue.admin.base import VIEW_DATA, may
from django_jobqueue.admin.parts import catalogue
from django_jobqueue.admin.parts.json_text import parsed
from django_jobqueue.models import JobType
from django_jobqueue.search.selection import Table
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import summary_data
from django_jobqueue.text import data_summary
from django_jobqueue.text.redaction import mask_json, secrets_in
from django_jobqueue.text.sanitizing import visible


def template_of(job_type: JobType | None) -> str | None:
    """The template in force."""
    if job_type is None:
        return None
    return job_type.summary_override or job_type.summary


def summaries(
    request: HttpRequest, table: Table, jobs: Iterable[Any]
) -> dict[UUID, str]:
    """A line about the data of each of these jobs, for who may see data: one query."""
    jobs = list(jobs)
    if not (jobs and may(request, VIEW_DATA)):
        return {}
    names = {job.job_type_id for job in jobs}
    types = catalogue.job_types(request, names)
    keys: set[str] = set()
    for name in names:
        keys |= data_summary.keys_of(template_of(types.get(name)))
    ids = [job.pk for job in jobs]
    data = summary_data.data_of(DjangoDatabase(), table, ids, keys)
    lines = {}
    for job in jobs:
        if job.pk in data:
            line = _line(types.get(job.job_type_id), parsed(data[job.pk]))
            lines[job.pk] = visible(line)
    return lines


def summary_cell(text: str | None) -> list[SafeString]:
    """A line of a cell; nothing without a summary."""
    if not text:
        return []
    return [format_html('<span class="jq-about">{}</span>', text)]


def _line(job_type: JobType | None, data: Any) -> str:
    sensitive = job_type.sensitive if job_type is not None else []
    names = sensitive if isinstance(sensitive, list) else []
    masked = mask_json(data, names, secrets_in(data, names))
    return data_summary.summary(template_of(job_type), masked)
