"""Prune: archived jobs go."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from datetime import timedelta
from uuid import UUID

from django_jobqueue.conf import conf
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import Ids, keys_of, several
from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations.audit_log import record
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.control import prune as store_prune
from django_jobqueue.store.control.prune import Rule


@sync_only()
def prune_rules(
    *,
    status: str | None = None,
    older_than: timedelta | None = None,
    job_type: str | None = None,
    using: str | None = None,
) -> list[Rule]:
    """The rules of a prune: the retention in force, or the arguments."""
    statuses = [status] if status else ArchivedStatus.values
    unknown = set(statuses) - set(ArchivedStatus.values)
    if unknown:
        raise InvalidArguments(
            f"{unknown.pop()!r} is not a status of archived jobs; they are "
            f"{', '.join(ArchivedStatus.values)}."
        )
    if older_than is not None:
        keep = older_than.total_seconds()
        return [Rule(status=s, keep=keep, job_type=job_type) for s in statuses]
    retention = {s: conf.retention[s] for s in statuses}
    counts = {s: conf.retention_count[s] for s in statuses}
    db = DjangoDatabase(using)
    rules = store_prune.rules(db, retention, counts, only_type=job_type)
    return [rule for rule in rules if rule.status in statuses]


@sync_only()
def prune_jobs(ids: Ids, *, using: str | None = None, by: str = "") -> list[UUID]:
    """Delete these archived jobs, with their failures; returns those that existed.

    Raises InvalidArguments.
    """
    gone = store_prune.prune_ids(DjangoDatabase(using), keys_of(ids))
    record("prune", by, len(gone), {}, ids=gone, using=using)
    return gone


@sync_only()
def prune(
    rules: Rule | Iterable[Rule], *, using: str | None = None, by: str = ""
) -> Generator[tuple[Rule, int]]:
    """Delete jobs by these rules, a thousand at a time, each time in its own
    transaction; yields the rule and the number of each.

    If you stop early, close it, so that the deletions are recorded at once.
    """
    db, total = DjangoDatabase(using), 0
    try:
        for rule in several(rules):
            for gone in store_prune.prune(db, rule):
                total += gone
                yield rule, gone
    finally:
        record("prune", by, total, {}, using=using)
