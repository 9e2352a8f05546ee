"""Rows with a text wherever a text can be, in every column of every table."""

from __future__ import annotations

import re
from typing import Any

from django.db import models
from django.utils import timezone

from django_jobqueue.models import (
    Alert,
    AlertDelivery,
    ArchivedJob,
    AuditEntry,
    BulkOperation,
    Erasure,
    Failure,
    FailureGroup,
    Firing,
    Host,
    JobSearch,
    JobType,
    KeyLimit,
    KeyOverride,
    Lease,
    Queue,
    QueuedJob,
    Report,
    SavedView,
    Schedule,
    Token,
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
LONG = f"<b id={MARK}>\u202e" * 70_000  # more than a megabyte
# Of which code knows the words, or the database the form.
SHORT_COLUMNS = ("desired", "kind", "backoff", "rate", "rate_override")


def harmless(text: str) -> str:
    """A text of the same length in which no character means anything but the colon,
    which ends the host in the name of a worker. It is as near to the top of a list."""
    return re.sub(r"[^\w\s:]", "0", text)


def infect(text: str, name: str = "") -> Keys:
    """Rows with this text in every column that takes it, and a name if it is to be
    another one; returns a key for each model."""
    name = (name or text)[:100]
    now = timezone.now()
    job_type = _insert(JobType, text, name=name, queue=name, paused=True)
    JobType.objects.filter(pk=name).update(paused_at=now)
    queue = _insert(Queue, text, name=name, paused=True, paused_at=now)
    worker = _insert(
        Worker,
        text,
        name=name,
        pid=1,
        desired="drain",
        running=1,
        lease_until=now + rows.HOUR,
    )
    group = rows.uuid4()
    _insert(
        FailureGroup,
        text,
        fingerprint=group,
        coarse=group,
        error_class=name,
        frame=name,
        assignee=name,
        notes=name,
    )
    selection = Selection(Table.ARCHIVED, (Term("type", name), Term("error", text)))
    operation = _insert(
        BulkOperation, text, kind="replay", selection=selection.to_json()
    )
    job = {"job_type": job_type, "queue": name, "priority": 0}  # not filled by the type
    running = _insert(
        QueuedJob, text, status="running", worker_id=worker.pk, started_at=now, **job
    )
    waiting = _insert(QueuedJob, text, attempts=1, **job)
    over = _insert(ArchivedJob, text, status="failed", fingerprint=group, **job)
    for id in (running.pk, waiting.pk, over.pk):
        _insert(
            Failure,
            text,
            job_id=id,
            job_type=name,
            number=1,
            end="failed",
            fingerprint=group,
            traceback=_traceback(text),
        )
        _insert(Report, text, job_id=id, fence=0, number=1, done=1, total=2)
    schedule = _insert(
        Schedule,
        text,
        name=name,
        job_type=job_type,
        options={text: text},
        paused=True,
        paused_at=now,
    )
    _insert(Firing, text, schedule=name, fires_at=now, outcome="manual", job_id=over.pk)
    host = _insert(
        Host,
        text,
        id=rows.uuid4(),
        name=name,
        queues=[text],
        desired={"processes": text, "queues": [text], "restart": text},
        applied={},
        lease_until=now + rows.HOUR,
    )
    lease = _insert(Lease, text, name=name, token=rows.uuid4())
    limit = _insert(KeyLimit, text, name=name.replace(" ", "_"))
    _insert(KeyOverride, text, limit_key=f"{limit.pk} {text}"[:260])
    first = {"rows": 1, "first": [str(over.pk)]}
    counted = {"archived": first, "schedules": {"rows": 1, "first": [name]}}
    token = _insert(
        Token,
        text,
        name=name[:100],
        scopes=[text],
        job_types=[text],
        queues={"a": text},
    )
    erasure = _insert(Erasure, text, counted=counted, total=2, position=None)
    selections = {"archived": selection.to_json()}
    search = _insert(JobSearch, text, selections=selections, place=None)
    act = _insert(AuditEntry, text, about=[text], details={text: text})
    alert = _insert(Alert, text, condition="backlog", subject=name, resolved_at=None)
    _insert(AlertDelivery, text, alert=alert, event="fired", send_id=None)
    view = _insert(SavedView, text, list="archivedjob", name=name[:60], is_shared=True)
    return {
        "alert": alert.pk,
        "archivedjob": over.pk,
        "auditentry": act.pk,
        "bulkoperation": operation.pk,
        "erasure": erasure.pk,
        "failuregroup": group,
        "host": host.pk,
        "jobsearch": search.pk,
        "jobtype": name,
        "keylimit": limit.pk,
        "lease": lease.pk,
        "overview": queue.pk,
        "queue": queue.pk,
        "queuedjob": waiting.pk,
        "token": token.pk,
        "savedview": view.pk,
        "schedule": schedule.pk,
        "worker": worker.pk,
    }


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
    """The text in JSON as this column has it."""
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
