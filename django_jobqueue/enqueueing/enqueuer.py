"""Enqueues jobs of one type, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
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
from django_jobqueue.domain.unique_rule import UniqueRule
from django_jobqueue.domain.weights import check_weight, weighing
from django_jobqueue.enqueueing.enqueued_ids import EnqueuedIds
from django_jobqueue.enqueueing.immediate_jobs import memory
from django_jobqueue.enqueueing.options import Options
from django_jobqueue.enqueueing.propagation import captured
from django_jobqueue.enqueueing.unique_jobs import (
    existing_job,
    insert_calls,
    own_rule,
    rule_of_code,
    unique_row,
)
from django_jobqueue.exceptions import InvalidArguments, UnknownJobType
from django_jobqueue.observers import Enqueue, around_enqueue
from django_jobqueue.store import find, job_types
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue import insert, insert_once, insert_unique
from django_jobqueue.store.queue.insert import Inserted
from django_jobqueue.store.queue.insert_many import insert_many
from django_jobqueue.store.queue.insert_unique import insert_many_keyed
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
            return existing_job(inserted, id, rule, self._new, self.options)
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
            enqueued, made = insert_calls(
                db, new, rule, self.options, ids, texts, self._declare
            )
            if made:
                self._send(signals.jobs_enqueued, ids=made)
            return enqueued
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

    @cached_property
    def _known_rule(self) -> UniqueRule | None:
        """The rule that the code says. Raises InvalidArguments."""
        is_known = self._declaration is not None
        return rule_of_code(self._declared_rule, self.options, is_known=is_known)

    def _rule_and_row(
        self, db: DjangoDatabase, rule: UniqueRule | None, trace: Trace | None
    ) -> tuple[UniqueRule | None, NewJob]:
        """The rule by which the job is unique, and the row to insert. The row of its
        job type says what holds for a handler that is not known here."""
        if self._declaration is not None:
            return rule, self._row(rule, trace)
        stored, is_keyed = job_types.stored_rules(db, self._new.job_type)
        if rule is None and stored is not None:
            rule = own_rule(stored, self.options)
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

    def _unique(self, rule: UniqueRule) -> NewJob:
        """The row to insert by this rule, which is made once for the rule of code."""
        if rule is not self._known_rule:
            return unique_row(self._new, rule, self.options)
        if self._known_row is None:
            self._known_row = unique_row(self._new, rule, self.options)
        return self._known_row

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
