"""Enqueues jobs of one type, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.dispatch import Signal

from django_jobqueue import observers, signals
from django_jobqueue.conf import conf
from django_jobqueue.domain import followers, unique_keys
from django_jobqueue.domain.arguments import refuse_call, to_json
from django_jobqueue.domain.ids import new_id, new_ids
from django_jobqueue.domain.per_key import check_key
from django_jobqueue.domain.policy import Policy
from django_jobqueue.domain.registry import Declaration, registry
from django_jobqueue.domain.unique_rule import (
    FOREVER,
    OPTIONS_OF_UNIQUE_JOBS,
    STARTED,
    UniqueRule,
)
from django_jobqueue.domain.weights import check_weight, weighing
from django_jobqueue.enqueueing.enqueued_ids import EnqueuedIds
from django_jobqueue.enqueueing.immediate_jobs import memory
from django_jobqueue.enqueueing.options import Options
from django_jobqueue.enqueueing.propagation import captured
from django_jobqueue.exceptions import DuplicateJob, InvalidArguments, UnknownJobType
from django_jobqueue.observers import Enqueue, around_enqueue
from django_jobqueue.store import find, job_types
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue import insert, insert_once, insert_unique
from django_jobqueue.store.queue.insert import Inserted
from django_jobqueue.store.queue.insert_many import insert_many
from django_jobqueue.store.queue.insert_unique import ManyInserted, insert_many_keyed
from django_jobqueue.store.queue.new_job import NewJob
from django_jobqueue.store.rows import Job

Data = dict[str, Any]
Trace = dict[str, str]


class Enqueuer:
    """Enqueues jobs of one type with the same options. Its callers have checked the
    data against the handler."""

    def __init__(
        self, job_type: str, declaration: Declaration | None, options: Options
    ) -> None:
        self.options = options
        self._declaration = declaration
        self._policy = declaration.policy if declaration else Policy()
        self._declared_rule = unique_keys.rule_of(declaration) if declaration else None
        self._new = options.new_job(job_type, declaration)
        self._known_row: NewJob | None = None
        self._counts_weights = bool(weighing(self._policy))

    def enqueue(self, data: Any) -> Job:
        """Enqueue one job. Raises DuplicateJob, AlreadyArchived, InvalidArguments,
        UnknownJobType."""
        text = to_json(data, limit=conf.max_data_bytes)
        self._check_key(data)
        rule = self._known_rule
        id = self.options.id or new_id()
        if not observers.registered:
            return self._enqueue(rule, id, data, text)
        about = self._about([id], len(text.encode()))
        with around_enqueue(about) as trace:
            about.ids = ()
            job = self._enqueue(rule, id, data, text, trace)
            about.ids, about.queue = [job.id], job.queue
        return job

    def _enqueue(
        self,
        rule: UniqueRule | None,
        id: UUID,
        data: Any,
        text: str,
        trace: Trace | None = None,
    ) -> Job:
        if conf.mode != "queue":
            new = self._row(None, trace)
            return memory.take(new, self._declaration, id, data, text)
        db = DjangoDatabase(self.options.using)
        rule, new = self._rule_and_row(db, rule, trace)
        inserted = self._insert(db, new, id, data, text)
        if inserted is None:
            self._declare(db)
            inserted = self._insert(db, new, id, data, text)
        if inserted is None:
            raise UnknownJobType(new.job_type)
        if not inserted.is_new:
            return self._existing(inserted, id, rule)
        self._send(signals.job_enqueued, job=inserted.job)
        return inserted.job

    def enqueue_many(self, calls: list[Data], *, first: int = 0) -> EnqueuedIds:
        """Enqueue all of these jobs or none; return their ids, in order. Raises the
        errors of ``enqueue``, and InvalidArguments for options of a single job.
        ``first`` is the number of the first call, for messages."""
        for name in ("id", "unique_key"):
            if getattr(self.options, name) is not None:
                raise InvalidArguments(f"{name} is for one job, not for enqueue_many.")
        limit, ids = conf.max_data_bytes, new_ids(len(calls))
        texts: list[str] = []
        try:
            for data in calls:
                self._check_key(data)
                texts.append(to_json(data, limit=limit))
        except InvalidArguments as error:
            refuse_call(first + len(texts), error)
        rule = self._known_rule
        if not calls:
            return EnqueuedIds()
        if not observers.registered:
            return self._enqueue_many(rule, ids, calls, texts)
        about = self._about(
            ids, sum(len(text.encode()) for text in texts), is_many=True
        )
        with around_enqueue(about) as trace:
            about.ids = ()
            enqueued = self._enqueue_many(rule, ids, calls, texts, trace)
            about.ids = enqueued
        return enqueued

    def _enqueue_many(
        self,
        rule: UniqueRule | None,
        ids: list[UUID],
        calls: list[Data],
        texts: list[str],
        trace: Trace | None = None,
    ) -> EnqueuedIds:
        if conf.mode != "queue":
            new = self._row(None, trace)
            for id, data, text in zip(ids, calls, texts, strict=True):
                memory.take(new, self._declaration, id, data, text)
            return EnqueuedIds(ids)
        db = DjangoDatabase(self.options.using)
        rule, new = self._rule_and_row(db, rule, trace)
        if rule is not None:
            return self._insert_unique(db, new, rule, ids, texts)
        insert = insert_many_keyed if new.is_keyed else insert_many
        if not insert(db, new, ids, texts):
            self._declare(db)
            insert(db, new, ids, texts)
        self._send(signals.jobs_enqueued, ids=ids)
        return EnqueuedIds(ids)

    def _about(self, ids: list[UUID], size: int, *, is_many: bool = False) -> Enqueue:
        """The enqueue for observers."""
        job_type, queue = self._new.job_type, self._new.queue
        return Enqueue(
            job_type=job_type, queue=queue, ids=ids, size=size, is_many=is_many
        )

    def _row(self, rule: UniqueRule | None, trace: Trace | None) -> NewJob:
        """The row to insert, with what the caller's context captures, and the trace of
        observers."""
        new = self._new if rule is None else self._unique(rule)
        if not (self._policy.captured or trace):
            return new
        values: dict[str, Any] = captured(self._policy.captured)
        metadata = self.options.metadata_as_json(values, trace)
        return new.but(metadata=metadata)

    def _insert(
        self, db: DjangoDatabase, new: NewJob, id: UUID, data: Any, text: str
    ) -> Inserted | None:
        own_id = self.options.id is not None
        if new.is_unique:
            return insert_unique.insert_unique(db, new, id, data, text, own_id=own_id)
        if own_id:
            return insert_once.insert_once(db, new, id, data, text)
        job = insert.insert(db, new, id, data, text)
        return None if job is None else Inserted(job, True)

    def _insert_unique(
        self,
        db: DjangoDatabase,
        new: NewJob,
        rule: UniqueRule,
        ids: list[UUID],
        texts: list[str],
    ) -> EnqueuedIds:
        """Enqueue each key's call: the last one if it replaces, else the first; return
        the id of each call's job."""
        keys = insert_unique.keys(db, new, texts)
        calls: dict[UUID, tuple[UUID, str]] = {}
        for key, call in zip(keys, zip(ids, texts, strict=True), strict=True):
            if rule.replaces and key in calls:
                call = (calls[key][0], call[1])
            calls[key] = call if rule.replaces else calls.get(key, call)
        if len(calls) < len(keys) and rule.raises and not rule.replaces:
            raise DuplicateJob(
                f"{len(keys) - len(calls)} of these {len(keys)} calls have the same "
                f"{self._shared_key(rule)} as another call; nothing was enqueued. "
                "Leave them out, or enqueue with on_duplicate='return'."
            )

        def insert_calls() -> ManyInserted:
            many = insert_unique.insert_many_unique(db, new, calls)
            if many is None:
                self._declare(db)
                many = insert_unique.insert_many_unique(db, new, calls)
            if many is None:
                raise UnknownJobType(new.job_type)
            if many.existing and rule.raises:
                job = find.find(db, next(iter(many.existing.values())))
                more = f" {len(many.existing)} of {len(keys)} calls have such a job."
                raise self._duplicate(job, rule, more)
            return many

        many = db.in_transaction(insert_calls)
        held = {**many.existing, **many.replaced}
        made = [id for key, (id, _) in calls.items() if key not in held]
        if made:
            self._send(signals.jobs_enqueued, ids=made)
        return EnqueuedIds(
            (held.get(key) or calls[key][0] for key in keys),
            replaced=many.replaced.values(),
            existing=many.existing.values(),
        )

    @cached_property
    def _known_rule(self) -> UniqueRule | None:
        """The rule by which jobs are unique, where the code says it; None if they are
        not. Raises InvalidArguments."""
        rule = self._declared_rule
        if rule is None and self.options.unique_key is not None:
            rule = UniqueRule()
        if rule is not None:
            return self._own(rule)
        for name in OPTIONS_OF_UNIQUE_JOBS:
            given = getattr(self.options, name)
            if self._declaration is not None and given not in (None, "raise"):
                raise InvalidArguments(
                    f"{name} needs using(unique_key=…) or @job(unique=…), by which two "
                    "calls are the same."
                )
        return None

    def _rule_and_row(
        self, db: DjangoDatabase, rule: UniqueRule | None, trace: Trace | None
    ) -> tuple[UniqueRule | None, NewJob]:
        """The rule by which the job is unique, and the row to insert. The row of its
        job type says what holds for a handler that is not known here."""
        if self._declaration is not None:
            return rule, self._row(rule, trace)
        stored, is_keyed = job_types.stored_rules(db, self._new.job_type)
        if rule is None and stored is not None:
            rule = self._own(stored)
        new = self._row(rule, trace)
        return rule, replace(new, is_keyed=True) if is_keyed else new

    def _check_key(self, data: Any) -> None:
        """Raises InvalidArguments for data of which no key, or no weight, can be
        made."""
        per_key = self._policy.per_key
        if per_key is not None and self.options.limit_key is None:
            check_key(per_key, data)
        if self._counts_weights:
            check_weight(self._policy, self.options.weight, data)

    def _own(self, rule: UniqueRule) -> UniqueRule:
        """The rule with the options of these jobs. Raises InvalidArguments."""
        given = {name: getattr(self.options, name) for name in OPTIONS_OF_UNIQUE_JOBS}
        rule = replace(
            rule, **{name: value for name, value in given.items() if value is not None}
        )
        if problem := rule.problem():
            raise InvalidArguments(problem)
        if rule.debounce is not None and self.options.run_after is not None:
            raise InvalidArguments(
                "run_after and debounce both say when the job is due; give one of them."
            )
        if self.options.id is not None and (rule.replaces or rule.is_window):
            raise InvalidArguments(
                "id makes an enqueue at most once by itself, and ignores a second "
                "call; it cannot be given with debounce, on_duplicate='replace', or a "
                "key that is held for a time."
            )
        return rule

    def _unique(self, rule: UniqueRule) -> NewJob:
        """The row to insert by this rule, which is made once for the rule of code."""
        if rule is not self._known_rule:
            return self._unique_row(rule)
        if self._known_row is None:
            self._known_row = self._unique_row(rule)
        return self._known_row

    def _unique_row(self, rule: UniqueRule) -> NewJob:
        text = self.options.unique_key
        key = unique_keys.key_of_text(self._new.job_type, text) if text else None
        return replace(
            self._new,
            unique_key=key,
            unique_rule=None if key else rule.json,
            unique_until_started=rule.until == STARTED,
            unique_window=rule.is_window,
            unique_for=rule.window,
            replaces=rule.replaces,
            moves=rule.debounce is not None or self.options.run_after is not None,
            delay=rule.debounce or self._new.delay,
            usual_delay=rule.debounce is not None and self.options.debounce is None,
            debounce_max=rule.debounce_max,
        )

    def _shared_key(self, rule: UniqueRule) -> str:
        """The words for what duplicates have in common."""
        if self.options.unique_key is not None:
            return f"unique_key {self.options.unique_key!r}"
        return unique_keys.described(rule.by or True)

    def _existing(self, holder: Inserted, id: UUID, rule: UniqueRule | None) -> Job:
        """The job that exists already, if the caller wants it. Raises DuplicateJob."""
        job = holder.job
        if job.id == id or job.is_replaced or rule is None or not rule.raises:
            return job
        raise self._duplicate(job, rule, held_until=holder.held_until)

    def _duplicate(
        self,
        job: Job | None,
        rule: UniqueRule,
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
            f"Job {which} of type {self._new.job_type!r} is already {status} and has "
            f"the same {self._shared_key(rule)}; {limit}.{more} "
            "Nothing was enqueued. With on_duplicate='return' that job is returned "
            "instead.",
            job,
        )

    def _declare(self, db: DjangoDatabase) -> None:
        """Write the missing rows of job types: the code is newer than the last
        migrate."""
        known, declarations = find.known_names(db), []
        needed = (self._new.job_type, *(self._new.follower_types or ()))
        for name in self._chain(needed):
            is_own = name == self._new.job_type
            declaration = self._declaration if is_own else registry.get(name)
            if declaration is not None:
                declarations.append(declaration)
            elif name in needed and name not in known:
                follows = "" if is_own else self._new.job_type
                raise UnknownJobType(name, registry.near(name, known), follows=follows)
        job_types.declare(db, declarations)

    def _chain(self, first: Iterable[str]) -> list[str]:
        """The ``first`` job types, their followers, theirs, and so on."""
        chain = [*first]
        for name in chain:
            declaration = registry.get(name)
            policy = declaration and followers.followers_of(declaration.policy)
            more = followers.job_types(policy) if policy else None
            chain += [name for name in more or () if name not in chain]
        return chain

    def _send(self, signal: Signal, **arguments: object) -> None:
        if signal.receivers:
            name = self._new.job_type
            sender = registry.sender(name)
            signals.send(signal, sender, job_type=name, **arguments)
