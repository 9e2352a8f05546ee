"""Rows of every table with a value in every column that can hold a person's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.db import connection, models
from django.utils import timezone

from django_jobqueue import rooms
from django_jobqueue.contrib.privacy.searched_tables import sources
from django_jobqueue.domain.states import Holds
from django_jobqueue.models import JobType
from django_jobqueue.store.personal_columns import Column, Source
from tests.store.rows import ADD

MODELS: dict[str, type[models.Model]] = {
    model._meta.db_table: model for model in (*rooms.models(), LogEntry)
}


def content(column: Column, value: Any) -> Any:
    """What the column holds of a person with this value."""
    text = f"mail to <{value}> refused"[: column.longest]
    match column.holds:
        case Holds.TEXT:
            return text
        case Holds.TEXTS:
            return [[1.5, "info", text], {"reason": text}]
        case Holds.SELECTION:
            terms = [["data", "=", value, ["customer", "id"]]]
            return {"table": "queued", "nothing": False, "terms": terms}
        case Holds.DATA if column.name == "tags":
            return [str(value), "vip"]
        case Holds.DATA if column.name == "followers":
            return {"on_success": [{"job_type": ADD, "metadata": {"of": value}}]}
    return {"customer": {"id": value, str(value): [7, value]}, "a": 1, "b": 2}


def plant(value: Any) -> dict[str, Any]:
    """Insert a row into each table; returns them by the name of the table."""
    return {source.name: _row(source, value) for source in sources()}


def _row(source: Source, value: Any) -> Any:
    columns = {column.name: content(column, value) for column in source.columns}
    if source.name == "job_types":
        JobType.objects.filter(name=ADD).update(**columns)
        return JobType.objects.get(name=ADD)
    if source.name == "admin_history":
        columns |= _history()
    model = MODELS[source.table]
    return model._default_manager.create(**_needed(source.name), **columns)


def _needed(name: str) -> dict[str, Any]:
    now = timezone.now()
    job = {"job_id": uuid4(), "number": 1}
    needed: dict[str, dict[str, Any]] = {
        "queued": {"job_type_id": ADD, "run_after": now + timedelta(days=1)},
        "archived": {"job_type_id": ADD, "status": "failed"},
        "failures": {**job, "job_type": ADD, "end": "failed"},
        "reports": {**job, "fence": 1},
        "failure_groups": {"fingerprint": uuid4(), "coarse": uuid4()},
        "schedules": {
            "name": str(uuid4()),
            "job_type_id": ADD,
            "rule": "every 60",
            "time_zone": "UTC",
        },
        "firings": {"schedule": "s", "fires_at": now, "outcome": "fired"},
        "queues": {"name": f"q{uuid4()}"},
        "bulk_operations": {"kind": "cancel", "state": "paused"},
        "audit": {"verb": "cancel"},
        "tokens": {"name": f"t{uuid4()}"},
        "erasures": {"act": "erase", "state": "done", "fingerprint": "0" * 64},
    }
    return needed.get(name, {})


def _history() -> dict[str, Any]:
    user, _is_new = get_user_model().objects.get_or_create(username="history")
    kind = ContentType.objects.get_for_model(JobType)
    return {
        "user_id": user.pk,
        "content_type_id": kind.pk,
        "object_id": ADD,
        "action_flag": 2,
    }


def texts() -> dict[str, str]:
    """All that is in all tables, by the name of the table."""
    found = {}
    with connection.cursor() as cursor:
        for table in MODELS:
            name = connection.ops.quote_name(table)
            cursor.execute(f"SELECT row_to_json(t)::text FROM {name} AS t")
            found[table] = "\n".join(row for (row,) in cursor.fetchall())
    return found


def tables_with(*values: str) -> list[str]:
    """The tables that have one of these texts anywhere."""
    return [
        table
        for table, content in texts().items()
        if any(value.lower() in content.lower() for value in values)
    ]
