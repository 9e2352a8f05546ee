"""The jobs that a list shows as a file: CSV or JSON lines, row by row."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from asgiref.sync import sync_to_async
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ERROR_FLAG
from django.core.handlers.asgi import ASGIRequest
from django.db import transaction
from django.db.models import TextField
from django.db.models.functions import Cast
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import ShowAction
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.base import VIEW_DATA, may
from django_jobqueue.admin.limits.limit_keys import shown_limit_key
from django_jobqueue.admin.lists.change_list import JobChangeList
from django_jobqueue.admin.lists.positions import Position
from django_jobqueue.admin.lists.selected import KnownIndexes, indexed_part, matching
from django_jobqueue.admin.parts import catalogue
from django_jobqueue.conf import conf
from django_jobqueue.models import JobType
from django_jobqueue.operations.audit_log import record
from django_jobqueue.search.selection import Table
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.time_budget import lower_limit
from django_jobqueue.text import timezones
from django_jobqueue.text.json_reading import UNREADABLE, read_json
from django_jobqueue.text.redaction import mask_json, mask_text, secrets_in

CHUNK: Final = 1_000  # rows that one statement looks at
# For who may see the data of jobs; options of followers may have such.
DATA: Final = ("data", "metadata", "result", "followers")
LIMIT_KEY: Final = "limit_key"
TEXTS: Final = ("error_message",)  # in which secrets may stand
# What spreadsheets take for a formula: https://owasp.org/www-community/attacks/CSV_Injection
FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")
# In place of what only plain SQL writes: a number of 5,000 digits, or nested too deep.
# Marks the text as UTF-8 for spreadsheets.
BOM: Final = "\ufeff"

Row = dict[str, Any]


class Export(ShowAction):
    """All jobs of the list, whatever their number, newest first."""

    content_type: ClassVar[str]
    extension: ClassVar[str]

    def show(self, page: ActionAdmin, request: HttpRequest) -> HttpResponse:
        """A file that is sent while it is read; data are for those who see data."""
        try:
            jobs: Any = page.get_changelist_instance(request)
        except (IncorrectLookupParameters, DisallowedModelAdminLookup):
            return HttpResponseRedirect(f"{page.list_url}?{ERROR_FLAG}=1")
        rows = _Rows(request, jobs)
        chunks = self.written(rows.columns, rows)
        moment = f"{timezones.now():%Y%m%d-%H%M%S}"
        name = f"{page.opts.model_name}s-{moment}.{self.extension}"
        response: Any = StreamingHttpResponse(
            _async(chunks) if isinstance(request, ASGIRequest) else chunks,
            content_type=self.content_type,
            headers={
                "Content-Disposition": f'attachment; filename="{name}"',
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "no-store",
            },
        )
        return response  # type: ignore[no-any-return]

    def written(self, columns: list[str], chunks: Iterable[list[Row]]) -> Iterator[str]:
        """The parts of the file."""
        raise NotImplementedError


class ExportCsv(Export):
    """For spreadsheets: a line of names, then a line for each job."""

    name = "export.csv"
    label = "CSV"
    content_type = "text/csv; charset=utf-8"
    extension = "csv"

    def written(self, columns: list[str], chunks: Iterable[list[Row]]) -> Iterator[str]:
        """One part for each chunk."""
        yield BOM + _csv([columns])
        for rows in chunks:
            yield _csv([_cell(row[name]) for name in columns] for row in rows)


class ExportJson(Export):
    """For programs: an object in each line."""

    name = "export.jsonl"
    label = _("JSON lines")
    content_type = "application/jsonl; charset=utf-8"
    extension = "jsonl"

    def written(self, columns: list[str], chunks: Iterable[list[Row]]) -> Iterator[str]:
        """One part for each chunk."""
        for rows in chunks:
            lines = (
                json.dumps(row, ensure_ascii=False, default=_plain) for row in rows
            )
            yield "".join(f"{line}\n" for line in lines)


EXPORTS: Final = (ExportCsv(), ExportJson())


class _Rows:
    """The jobs in chunks, as this user may see them. Each chunk is a short transaction
    of its own: nothing keeps a snapshot while somebody downloads slowly."""

    def __init__(self, request: HttpRequest, jobs: JobChangeList) -> None:
        self._by = request.user.get_username()
        self._jobs = jobs
        self._model = jobs.model
        self._request = request
        self._indexes = KnownIndexes()
        sees_data = may(request, VIEW_DATA)
        hidden = () if sees_data else DATA
        fields = (field.attname for field in self._model._meta.concrete_fields)
        self._fields = [name for name in fields if name not in hidden]
        self.columns = [_COLUMNS.get(name, name) for name in self._fields]
        self._plain = [name for name in self._fields if name not in DATA]
        # As texts, since plain SQL writes what Python cannot read. Secrets of the data
        # may stand in messages, too.
        read = dict.fromkeys([*(n for n in self._fields if n in DATA), "data"])
        self._texts = {_text_of(name): Cast(name, TextField()) for name in read}

    def __iter__(self) -> Iterator[list[Row]]:
        position: Position | None = None
        number = 0
        try:
            while True:
                chunk, position = self._chunk(position)
                number += len(chunk)
                if chunk:
                    names = {values["job_type_id"] for values in chunk}
                    types = catalogue.job_types(self._request, names)
                    yield [
                        self._row(values, types.get(values["job_type_id"]))
                        for values in chunk
                    ]
                if position is None:
                    return
        finally:
            table = self._jobs.selection.table
            table_name = "archived" if table is Table.ARCHIVED else "queued"
            record("export", self._by, number, {"jobs": table_name})

    def _chunk(self, after: Position | None) -> tuple[list[Row], Position | None]:
        """The jobs among the next rows of an index, and the position to go on at; None
        at the end."""
        key, selection = self._jobs.key, self._jobs.selection
        ordered = self._model._default_manager.order_by(*key.order)
        if after is not None:
            ordered = ordered.filter(key.after(after))
        with transaction.atomic(using=conf.database):
            lower_limit(DjangoDatabase(), round(conf.admin_statement_timeout * 1_000))
            indexed = indexed_part(selection, self._indexes)
            seen = matching(ordered, indexed, self._indexes)
            ends = list(seen.values_list(*key.names)[CHUNK - 1 : CHUNK])
            rows = matching(ordered, selection, self._indexes)
            if ends:
                rows = rows.exclude(key.after(ends[0]))
            values = rows.annotate(**self._texts).values(*self._plain, *self._texts)
            return list(values), ends[0] if ends else None

    def _row(self, values: Row, job_type: JobType | None) -> Row:
        """The values that the user may see, by the names of the columns."""
        sensitive = job_type.sensitive if job_type is not None else []
        names = sensitive if isinstance(sensitive, list) else []
        data = _value(values[_text_of("data")])
        secrets = secrets_in(data, names)
        row: Row = {}
        for name, column in zip(self._fields, self.columns, strict=True):
            if name in DATA:
                is_safe = data is not UNREADABLE or not names  # what is secret is known
                value = _value(values[_text_of(name)]) if is_safe else UNREADABLE
                row[column] = mask_json(value, names, secrets)
            elif name in TEXTS:
                row[column] = mask_text(values[name], secrets)
            elif name == LIMIT_KEY and values[name]:
                key = shown_limit_key(self._request, values[name])
                row[column] = mask_text(key, secrets)
            else:
                row[column] = values[name]
        return row


def _text_of(name: str) -> str:
    return f"{name}_text"


def _value(text: str | None) -> Any:
    """The value of JSON text from the database."""
    return None if text is None else read_json(text)


_COLUMNS: Final = {"job_type_id": "job_type"}


def _csv(rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    """A value as a cell, which no spreadsheet computes."""
    if value is None or isinstance(value, int | float):
        return "" if value is None else value
    text = _text(value)
    return f"'{text}" if text.startswith(FORMULAS) else text


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return str(_plain(value))


def _plain(value: Any) -> Any:
    """A value that JSON does not have."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value)


async def _async(parts: Iterator[str]) -> AsyncIterator[str]:
    """For servers that would otherwise read all before they send any."""
    next_part: Callable[[], str | None] = lambda: next(parts, None)  # noqa: E731
    while (part := await sync_to_async(next_part)()) is not None:
        yield part
