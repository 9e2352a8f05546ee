"""Unique jobs: the rule of an enqueue, the row by it, and duplicates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django_jobqueue.domain import unique_keys
from django_jobqueue.domain.unique_rule import (
    FOREVER,
    OPTIONS_OF_UNIQUE_JOBS,
    STARTED,
    UniqueRule,
)
from django_jobqueue.enqueueing.enqueued_ids import EnqueuedIds
from django_jobqueue.enqueueing.options import Options
from django_jobqueue.exceptions import DuplicateJob, InvalidArguments, UnknownJobType
from django_jobqueue.store import find
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue import insert_unique
from django_jobqueue.store.queue.insert import Inserted
from django_jobqueue.store.queue.insert_unique import ManyInserted
from django_jobqueue.store.queue.new_job import NewJob
from django_jobqueue.store.rows import Job


def rule_of_code(
    declared: UniqueRule | None, options: Options, *, is_known: bool
) -> UniqueRule | None:
    """The rule by which jobs are unique, where the code says it; None if they are
    not. ``is_known``: there is a handler. Raises InvalidArguments."""
    rule = declared
    if rule is None and options.unique_key is not None:
        rule = UniqueRule()
    if rule is not None:
        return own_rule(rule, options)
    for name in OPTIONS_OF_UNIQUE_JOBS:
        given = getattr(options, name)
        if is_known and given not in (None, "raise"):
            raise InvalidArguments(
                f"{name} needs using(unique_key=…) or @job(unique=…), by which two "
                "calls are the same."
            )
    return None


def own_rule(rule: UniqueRule, options: Options) -> UniqueRule:
    """The rule with the options of these jobs. Raises InvalidArguments."""
    given = {name: getattr(options, name) for name in OPTIONS_OF_UNIQUE_JOBS}
    rule = replace(
        rule, **{name: value for name, value in given.items() if value is not None}
    )
    if problem := rule.problem():
        raise InvalidArguments(problem)
    if rule.debounce is not None and options.run_after is not None:
        raise InvalidArguments(
            "run_after and debounce both say when the job is due; give one of them."
        )
    if options.id is not None and (rule.replaces or rule.is_window):
        raise InvalidArguments(
            "id makes an enqueue at most once by itself, and ignores a second "
            "call; it cannot be given with debounce, on_duplicate='replace', or a "
            "key that is held for a time."
        )
    return rule


def unique_row(new: NewJob, rule: UniqueRule, options: Options) -> NewJob:
    """The row to insert by this rule."""
    text = options.unique_key
    key = unique_keys.key_of_text(new.job_type, text) if text else None
    return replace(
        new,
        unique_key=key,
        unique_rule=None if key else rule.json,
        unique_until_started=rule.until == STARTED,
        unique_window=rule.is_window,
        unique_for=rule.window,
        replaces=rule.replaces,
        moves=rule.debounce is not None or options.run_after is not None,
        delay=rule.debounce or new.delay,
        usual_delay=rule.debounce is not None and options.debounce is None,
        debounce_max=rule.debounce_max,
    )


def insert_calls(
    db: DjangoDatabase,
    new: NewJob,
    rule: UniqueRule,
    options: Options,
    ids: list[UUID],
    texts: list[str],
    declare: Callable[[DjangoDatabase], None],
) -> tuple[EnqueuedIds, list[UUID]]:
    """Enqueue each key's call: the last one if it replaces, else the first; return the
    id of each call's job, and those of the new ones. ``declare`` writes the row of a
    job type that has none yet."""
    keys = insert_unique.keys(db, new, texts)
    calls: dict[UUID, tuple[UUID, str]] = {}
    for key, call in zip(keys, zip(ids, texts, strict=True), strict=True):
        if rule.replaces and key in calls:
            call = (calls[key][0], call[1])
        calls[key] = call if rule.replaces else calls.get(key, call)
    if len(calls) < len(keys) and rule.raises and not rule.replaces:
        raise DuplicateJob(
            f"{len(keys) - len(calls)} of these {len(keys)} calls have the same "
            f"{_shared_key(rule, options)} as another call; nothing was enqueued. "
            "Leave them out, or enqueue with on_duplicate='return'."
        )

    def insert_all() -> ManyInserted:
        many = insert_unique.insert_many_unique(db, new, calls)
        if many is None:
            declare(db)
            many = insert_unique.insert_many_unique(db, new, calls)
        if many is None:
            raise UnknownJobType(new.job_type)
        if many.existing and rule.raises:
            job = find.find(db, next(iter(many.existing.values())))
            more = f" {len(many.existing)} of {len(keys)} calls have such a job."
            raise _duplicate(job, rule, new, options, more)
        return many

    many = db.in_transaction(insert_all)
    held = {**many.existing, **many.replaced}
    made = [id for key, (id, _) in calls.items() if key not in held]
    enqueued = EnqueuedIds(
        (held.get(key) or calls[key][0] for key in keys),
        replaced=many.replaced.values(),
        existing=many.existing.values(),
    )
    return enqueued, made


def existing_job(
    holder: Inserted, id: UUID, rule: UniqueRule | None, new: NewJob, options: Options
) -> Job:
    """The job that exists already, if the caller wants it. Raises DuplicateJob."""
    job = holder.job
    if job.id == id or job.is_replaced or rule is None or not rule.raises:
        return job
    raise _duplicate(job, rule, new, options, held_until=holder.held_until)


def _duplicate(
    job: Job | None,
    rule: UniqueRule,
    new: NewJob,
    options: Options,
    more: str = "",
    *,
    held_until: datetime | None = None,
) -> DuplicateJob:
    which, status = (job.id, job.status) if job else ("?", "gone")
    limit = f"there can be one at a time, until it is {rule.until}"
    if rule.until == FOREVER:
        limit = "there can be only one, forever"
    elif rule.is_window:
        moment = held_until or f"{rule.until} after its enqueue"
        limit = f"there can be no other until {moment}"
    return DuplicateJob(
        f"Job {which} of type {new.job_type!r} is already {status} and has "
        f"the same {_shared_key(rule, options)}; {limit}.{more} "
        "Nothing was enqueued. With on_duplicate='return' that job is returned "
        "instead.",
        job,
    )


def _shared_key(rule: UniqueRule, options: Options) -> str:
    """The words for what duplicates have in common."""
    if options.unique_key is not None:
        return f"unique_key {options.unique_key!r}"
    return unique_keys.described(rule.by or True)
