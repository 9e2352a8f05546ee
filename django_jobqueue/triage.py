"""The operator's verbs: a store call, a signal and a log line each.

The admin and the commands call these, and so may your code. ``by`` says who acts, for
the log and for receivers of the signal ``operated``; permissions are the caller's
business.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from django_jobqueue import signals
from django_jobqueue.arguments import to_json
from django_jobqueue.conf import conf
from django_jobqueue.exceptions import (
    InvalidArguments,
    JobNotFound,
    NotReplayable,
    UnknownJobType,
)
from django_jobqueue.ids import as_id
from django_jobqueue.options import time_problem
from django_jobqueue.policy import WHO_LENGTH, priority_problem, queue_problem
from django_jobqueue.registry import registry
from django_jobqueue.states import ArchivedStatus
from django_jobqueue.store import cancel as store_cancel
from django_jobqueue.store import find as store_find
from django_jobqueue.store import job_types, workers
from django_jobqueue.store import prune as store_prune
from django_jobqueue.store import replay as store_replay
from django_jobqueue.store import reschedule as store_reschedule
from django_jobqueue.store.cancel import Cancelled
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.prune import Rule
from django_jobqueue.store.replay import Replay
from django_jobqueue.store.rows import Job

logger = logging.getLogger("django_jobqueue.triage")

Ids = Iterable[UUID | str]


def get_job(id: UUID | str) -> Job:
    """The job with this id, queued or archived. Raises JobNotFound,
    InvalidArguments."""
    key = as_id(id)
    job = store_find.find(DjangoDatabase(), key)
    if job is None:
        raise JobNotFound(key)
    return job


def replay(
    id: UUID | str,
    *,
    run_after: datetime | None = None,
    expires: str | datetime | None = "keep",
    queue: str | None = None,
    priority: int | None = None,
    data: Mapping[str, Any] | None = None,
    by: str = "",
) -> Job:
    """Enqueue an archived job again, as a new job that remembers the old one.

    ``expires``: "keep" copies the old moment, so that a job that expired expires again;
    "same" gives it the same time to live from now; None is never; or a new moment.
    ``data`` replaces the old data, and must fit the handler. Raises JobNotFound,
    NotReplayable, UnknownJobType, InvalidArguments.
    """
    job = get_job(id)
    if not job.is_over:
        raise NotReplayable(job.id, job.status)
    text = None if data is None else _checked_data(job.job_type, data)
    how = _how(run_after, expires, queue, priority, by, text)
    made = store_replay.replay(DjangoDatabase(), [job.id], how)
    if not made:
        raise _why_not_replayed(job)
    _tell("replay", by, 1, {"id": str(job.id), "job_type": job.job_type})
    return get_job(made[job.id])


def replay_many(
    ids: Ids,
    *,
    run_after: datetime | None = None,
    expires: str | datetime | None = "keep",
    queue: str | None = None,
    priority: int | None = None,
    by: str = "",
) -> dict[UUID, UUID]:
    """Replay these archived jobs; returns the new id of each that could be.

    Ids that are not archived, or whose job type is gone, are left out.
    """
    keys = _keys(ids)
    how = _how(run_after, expires, queue, priority, by, None)
    made = store_replay.replay(DjangoDatabase(), keys, how)
    _tell("replay", by, len(made), {"asked": len(keys)})
    return made


def cancel(ids: Ids, *, reason: str = "", by: str = "") -> Cancelled:
    """Cancel these jobs: queued ones are archived, running ones are asked to stop.

    Ids that are neither queued nor running are left out.
    """
    text = reason or (f"cancelled by {by}" if by else "cancelled")
    cancelled = store_cancel.cancel(DjangoDatabase(), _keys(ids), reason=text)
    count = len(cancelled.archived) + len(cancelled.asked)
    _tell("cancel", by, count, {"asked_to_stop": len(cancelled.asked)})
    return cancelled


def run_now(ids: Ids, *, by: str = "") -> list[UUID]:
    """Let these waiting jobs run now; returns those that were still waiting."""
    changed = store_reschedule.reschedule(DjangoDatabase(), _keys(ids), now=True)
    _tell("run now", by, len(changed), {})
    return changed


def reschedule(
    ids: Ids,
    *,
    run_after: datetime | None = None,
    priority: int | None = None,
    queue: str | None = None,
    by: str = "",
) -> list[UUID]:
    """Change when, how urgently or where these waiting jobs run; returns those that
    were still waiting. Raises InvalidArguments."""
    _check(run_after=run_after, priority=priority, queue=queue)
    changed = store_reschedule.reschedule(
        DjangoDatabase(),
        _keys(ids),
        run_after=run_after,
        priority=priority,
        queue=queue,
    )
    _tell("reschedule", by, len(changed), {"run_after": str(run_after or "")})
    return changed


def pause(
    names: Sequence[str],
    *,
    queues: bool = False,
    reason: str = "",
    resume_at: datetime | None = None,
    by: str = "",
) -> list[str]:
    """Stop the claiming of these job types, or ``queues``; what runs goes on.

    It holds from the next claim on, everywhere, until ``resume`` or ``resume_at``.
    All of them or none: raises UnknownJobType.
    """
    _check(resume_at=resume_at)
    db = DjangoDatabase()
    with transaction.atomic(using=db.alias):
        changed = job_types.pause(
            db, names, queues=queues, by=by, reason=reason, resume_at=resume_at
        )
        _must_exist(db, names, changed)
    what = "queues" if queues else "job_types"
    _tell("pause", by, len(changed), {what: changed, "reason": reason})
    return changed


def resume(names: Sequence[str], *, queues: bool = False, by: str = "") -> list[str]:
    """Let these job types, or ``queues``, be claimed again. Raises UnknownJobType."""
    db = DjangoDatabase()
    with transaction.atomic(using=db.alias):
        changed = job_types.resume(db, names, queues=queues)
        if not queues:
            _must_exist(db, names, changed)
    what = "queues" if queues else "job_types"
    _tell("resume", by, len(changed), {what: changed})
    return changed


def ask_workers(ids: Sequence[int], what: str, *, by: str = "") -> list[int]:
    """Ask workers to ``drain``, ``resume``, ``stop`` or ``restart``; returns those
    alive.

    Drained workers claim nothing until they are resumed. Stopped and restarted ones
    finish what runs and end; a restarted one has a successor at once.
    """
    if what not in ("drain", "resume", "stop", "restart"):
        raise InvalidArguments(
            f"A worker can be asked to drain, resume, stop or restart, not {what!r}."
        )
    asked = workers.ask(DjangoDatabase(), ids, what)
    _tell(f"{what} workers", by, len(asked), {"workers": asked})
    return asked


def prune_rules(
    *,
    status: str | None = None,
    older_than: timedelta | None = None,
    job_type: str | None = None,
) -> list[Rule]:
    """What pruning would go by: the retention in force, or what is given here."""
    statuses = [status] if status else ArchivedStatus.values
    unknown = set(statuses) - set(ArchivedStatus.values)
    if unknown:
        raise InvalidArguments(
            f"{unknown.pop()!r} is no status of archived jobs; they are "
            f"{', '.join(ArchivedStatus.values)}."
        )
    if older_than is not None:
        keep = older_than.total_seconds()
        return [Rule(status=s, keep=keep, job_type=job_type) for s in statuses]
    retention = {s: conf.retention[s] for s in statuses}
    found = store_prune.rules(DjangoDatabase(), retention, only_type=job_type)
    return [rule for rule in found if rule.status in statuses]


def prune(rules: Iterable[Rule], *, by: str = "") -> Generator[tuple[Rule, int]]:
    """Delete what these rules let go, a thousand jobs at a time, each time in a
    transaction of its own; yields the rule and the number of each.

    Close it if you leave it early, so that what was done is told at once.
    """
    db, total = DjangoDatabase(), 0
    try:
        for rule in rules:
            for gone in store_prune.prune(db, rule):
                total += gone
                yield rule, gone
    finally:
        _tell("prune", by, total, {})


def _keys(ids: Ids) -> list[UUID]:
    return [as_id(id) for id in ids]


def _how(
    run_after: datetime | None,
    expires: str | datetime | None,
    queue: str | None,
    priority: int | None,
    by: str,
    data: str | None,
) -> Replay:
    _check(run_after=run_after, priority=priority, queue=queue)
    if isinstance(expires, datetime):
        _check(expires=expires)
        expiry, expires_at = "new", expires
    elif expires in ("keep", "same", None):
        expiry, expires_at = expires or "none", None
    else:
        raise InvalidArguments(
            f"expires must be 'keep', 'same', None or a datetime, not {expires!r}."
        )
    return Replay(
        run_after=run_after,
        queue=queue,
        priority=priority,
        data=data,
        expiry=expiry,
        expires_at=expires_at,
        by=by[:WHO_LENGTH] or None,
    )


def _check(
    *,
    priority: int | None = None,
    queue: str | None = None,
    **moments: datetime | None,
) -> None:
    for name, moment in moments.items():
        if problem := time_problem(name, moment, "a datetime"):
            raise InvalidArguments(problem)
    if priority is not None and (problem := priority_problem(priority)):
        raise InvalidArguments(f"priority {problem}")
    if queue is not None and (problem := queue_problem(queue)):
        raise InvalidArguments(f"queue {problem}")


def _checked_data(job_type: str, data: Mapping[str, Any]) -> str:
    declaration = registry.get(job_type)
    if declaration and (problem := declaration.parameters.problem(dict(data))):
        raise InvalidArguments(problem)
    return to_json(dict(data), limit=conf.max_data_bytes)


def _why_not_replayed(job: Job) -> Exception:
    """Between the look and the insert the job was pruned, or its job type is gone."""
    known = store_find.known_names(DjangoDatabase())
    if job.job_type not in known:
        return UnknownJobType(job.job_type, registry.near(job.job_type, known))
    return JobNotFound(job.id)


def _must_exist(db: DjangoDatabase, names: Sequence[str], found: list[str]) -> None:
    for name in names:
        if name not in found:
            near = registry.near(name, store_find.known_names(db))
            raise UnknownJobType(name, near)


def _tell(verb: str, by: str, count: int, details: dict[str, Any]) -> None:
    logger.info(
        "%s: %d by %s %s",
        verb,
        count,
        by or "code",
        details,
        extra={"verb": verb, "by": by, "count": count, **_prefixed(details)},
    )
    signals.send(signals.operated, verb, by=by, count=count, details=details)


def _prefixed(details: dict[str, Any]) -> dict[str, Any]:
    return {f"job_{name}": value for name, value in details.items()}
