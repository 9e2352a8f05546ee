"""Rows with a text wherever a text can be, in every column of every table."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils import timezone

from django_jobqueue.contrib.alerts.models import Alert, AlertDelivery
from django_jobqueue.contrib.console.models import JobSearch, SavedView
from django_jobqueue.contrib.http.models import Token
from django_jobqueue.contrib.leases.models import Lease
from django_jobqueue.contrib.privacy.models import Erasure
from django_jobqueue.contrib.schedules.models import Firing, Schedule
from django_jobqueue.models import (
    ArchivedJob,
    AuditEntry,
    BulkOperation,
    Failure,
    FailureGroup,
    Host,
    JobType,
    KeyLimit,
    KeyOverride,
    Queue,
    QueuedJob,
    Report,
    Worker,
)
from django_jobqueue.search.selection import Selection, Table, Term
from tests.admin import scene as rows
from tests.admin.endpoints import Keys

MARK = "jqmark"
HOSTILE = (
    f"<script>alert('{MARK}')</script>",
    f"<img src=x onerror=alert('{MARK}')>",
    f"\"'><svg/onload=alert('{MARK}')><x a=\"",
    f"</pre></textarea></title></style></script><b id={MARK}>",
    f"javascript:alert('{MARK}')",
    f"{{{{ 7|add:7 }}}}{{% now 'Y' %}}{MARK}",
    f"%s %(count)d {{}} {{0}} \\u003cb id={MARK}\\u003e &lt;b&gt;",
    f"https://example.com/{MARK}?a=<b>",
)
# All of them, for tests that take long; each fits a name.
TOGETHER = tuple("".join(pair) for pair in zip(HOSTILE[:4], HOSTILE[4:], strict=True))
HIDDEN = f"\u202e{MARK}\u200b\x1b[31m\ufeff"
LONG = f"<b id={MARK}>\u202e" * 30_000  # nearly a megabyte on a page
# Of which code knows the words, or the database the form.
SHORT_COLUMNS = ("desired", "kind", "backoff", "rate", "rate_override")


def infect(text: str, name: str = "") -> Keys:
    """Rows with this text in every column that takes it, and a name if it is to be
    another one; returns a key for each model."""
    name = (name or text)[:100]
    now, group = timezone.now(), rows.uuid4()
    pause, lease = {"paused": True, "paused_at": now}, {"lease_until": now + rows.HOUR}
    keys: dict[str, Any] = {"failuregroup": group, "jobtype": name}

    def add(model: type[models.Model], **columns: Any) -> Any:
        row = _insert(model, text, **columns)
        keys.setdefault(str(model._meta.model_name), row.pk)
        return row

    job_type = add(JobType, name=name, queue=name, **pause)
    keys["overview"] = add(Queue, name=name, **pause).pk
    worker = add(Worker, name=name, pid=1, desired="drain", running=1, **lease)
    ids = {"fingerprint": group, "coarse": group}
    words = {"error_class": name, "frame": name, "assignee": name, "notes": name}
    add(FailureGroup, **ids, **words)
    selection = Selection(Table.ARCHIVED, (Term("type", name), Term("error", text)))
    add(BulkOperation, kind="replay", selection=selection.to_json())
    job = {"job_type": job_type, "queue": name, "priority": 0}  # not filled by the type
    waiting = add(QueuedJob, attempts=1, **job)
    began = {"status": "running", "worker_id": worker.pk, "started_at": now}
    running = add(QueuedJob, **began, **job)
    over = add(ArchivedJob, status="failed", fingerprint=group, **job)
    failed = {"job_type": name, "number": 1, "end": "failed", "fingerprint": group}
    for id in (running.pk, waiting.pk, over.pk):
        add(Failure, job_id=id, traceback=_traceback(text), **failed)
        add(Report, job_id=id, fence=0, number=1, done=1, total=2)
    add(Schedule, name=name, job_type=job_type, options={text: text}, **pause)
    add(Firing, schedule=name, fires_at=now, outcome="manual", job_id=over.pk)
    desired = {"processes": text, "queues": [text], "restart": text}
    host = {"name": name, "queues": [text], "desired": desired, "applied": {}}
    add(Host, id=rows.uuid4(), **host, **lease)
    add(Lease, name=name, token=rows.uuid4())
    limit = add(KeyLimit, name=name.replace(" ", "_"))
    add(KeyOverride, limit_key=f"{limit.pk} {text}"[:260])
    token = {"scopes": [text], "job_types": [text], "queues": {"a": text}}
    add(Token, name=name, **token)
    first = {"rows": 1, "first": [str(over.pk)]}
    counted = {"archived": first, "schedules": {"rows": 1, "first": [name]}}
    add(Erasure, counted=counted, total=2, position=None)
    add(JobSearch, selections={"archived": selection.to_json()}, place=None)
    add(AuditEntry, about=[text], details={text: text})
    alert = add(Alert, condition="backlog", subject=name, resolved_at=None)
    add(AlertDelivery, alert=alert, event="fired", send_id=None)
    add(SavedView, list="archivedjob", name=name[:60], is_shared=True)
    return keys


def _insert(model: type[models.Model], text: str, **columns: Any) -> Any:
    """A row of this model with the text in all columns that are not given."""
    for field in model._meta.concrete_fields:
        name = field.name
        if name in columns or name in SHORT_COLUMNS or field.choices:
            continue
        if isinstance(field, models.JSONField):
            columns[name] = _json(name, text)
        elif isinstance(field, models.CharField | models.TextField):
            columns[name] = text[: field.max_length]
    return model._default_manager.create(**columns)


def _json(column: str, text: str) -> Any:
    if column in ("tags", "queues", "job_types", "sensitive"):
        return [text]
    if column == "versions":
        return {text: text}
    if column == "frames":
        return [{"file": text, "line": 3, "function": text, "project": True}]
    if column == "lines":
        return [[1, "info", text], [2, text, text]]
    if column in ("data", "data_override", "metadata", "result"):
        return {text: text, "list": [text], "deep": {text: {text: [text]}}}
    return {}


def _traceback(text: str) -> str:
    """A traceback as Python writes it, about this text."""
    line = text.replace("\n", " ")
    return (
        "Traceback (most recent call last):\n"
        f'  File "{line}", line 3, in {line}\n    {line}\nshop.{line}: {line}'
    )
