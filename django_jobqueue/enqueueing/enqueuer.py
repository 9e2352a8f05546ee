"""Enqueues jobs of one type, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.dispatch import Signal

from django_jobqueue import signals
from django_jobqueue.conf import conf
from django_jobqueue.domain import followers, unique_keys
from django_jobqueue.domain.arguments import refuse_call, to_json
from django_jobqueue.domain.ids import new_id, new_ids
from django_jobqueue.domain.policy import Policy
from django_jobqueue.domain.registry import Declaration, registry
from django_jobqueue.domain.unique_keys import UniqueRule
from django_jobqueue.enqueueing.immediate_jobs import memory
from django_jobqueue.enqueueing.options import Options
from django_jobqueue.enqueueing.propagation import captured
from django_jobqueue.exceptions import DuplicateJob, InvalidArguments, UnknownJobType
from django_jobqueue.store import find, job_types
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue import insert, insert_many, insert_unique
from django_jobqueue.store.queue.insert import Inserted, NewJob
from django_jobqueue.store.rows import Job

Data = dict[str, Any]


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

    def enqueue(self, data: Any) -> Job:
        """Enqueue one job. Raises DuplicateJob, AlreadyArchived, InvalidArguments,
        UnknownJobType."""
        text = to_json(data, limit=conf.max_data_bytes)
        new = self._with_captured() if self._policy.captured else self._new
        id = self.options.id or new_id()
        if conf.mode != "queue":
            return memory.take(new, self._declaration, id, data, text)
        db = DjangoDatabase(self.options.using)
        rule = self._rule(db)
        if rule is not None:
            new = self._unique(new, rule)
        inserted = self._insert(db, new, id, data, text)
        if inserted is None:
            self._declare(db)
            inserted = self._insert(db, new, id, data, text)
        if inserted is None:
            raise UnknownJobType(new.job_type)
        if not inserted.is_new:
            return self._existing(inserted.job, id, rule)
        self._send(signals.job_enqueued, job=inserted.job)
        return inserted.job

    def enqueue_many(self, calls: list[Data], *, first: int = 0) -> list[UUID]:
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
                texts.append(to_json(data, limit=limit))
        except InvalidArguments as error:
            refuse_call(first + len(texts), error)
        if not calls:
            return []
        new = self._with_captured() if self._policy.captured else self._new
        if conf.mode != "queue":
            for id, data, text in zip(ids, calls, texts, strict=True):
                memory.take(new, self._declaration, id, data, text)
            return ids
        db = DjangoDatabase(self.options.using)
        if (rule := self._rule(db)) is not None:
            return self._insert_unique(db, self._unique(new, rule), rule, ids, texts)
        if not insert_many.insert_many(db, new, ids, texts):
            self._declare(db)
            insert_many.insert_many(db, new, ids, texts)
        self._send(signals.jobs_enqueued, ids=ids)
        return ids

    def _with_captured(self) -> NewJob:
        """The row to insert, with what the caller's context captures."""
        metadata = self.options.metadata_as_json(captured(self._policy.captured))
        return replace(self._new, metadata=metadata)

    def _insert(
        self, db: DjangoDatabase, new: NewJob, id: UUID, data: Any, text: str
    ) -> Inserted | None:
        own_id = self.options.id is not None
        if new.is_unique:
            return insert_unique.insert_unique(db, new, id, data, text, own_id=own_id)
        if own_id:
            return insert.insert_once(db, new, id, data, text)
        job = insert.insert(db, new, id, data, text)
        return None if job is None else Inserted(job, True)

    def _insert_unique(
        self,
        db: DjangoDatabase,
        new: NewJob,
        rule: UniqueRule,
        ids: list[UUID],
        texts: list[str],
    ) -> list[UUID]:
        """Enqueue the calls without a duplicate; return the id of each call's job."""
        keys = insert_unique.keys(db, new, texts)
        calls: dict[UUID, tuple[UUID, str]] = {}
        for key, call in zip(keys, zip(ids, texts, strict=True), strict=True):
            calls.setdefault(key, call)
        raises = rule.on_duplicate == "raise"
        if len(calls) < len(keys) and raises:
            raise DuplicateJob(
                f"{len(keys) - len(calls)} of these {len(keys)} calls have the same "
                f"{self._shared_key(rule)} as another call; nothing was enqueued. "
                "Leave them out, or enqueue with on_duplicate='return'."
            )

        def insert_calls() -> dict[UUID, UUID]:
            held = insert_unique.insert_many_unique(db, new, calls)
            if held is None:
                self._declare(db)
                held = insert_unique.insert_many_unique(db, new, calls) or {}
            if held and raises:
                job = find.find(db, next(iter(held.values())))
                more = f" {len(held)} of {len(keys)} calls have such a job."
                raise self._duplicate(job, rule, more)
            return held

        held = db.in_transaction(insert_calls)
        made = [id for key, (id, _) in calls.items() if key not in held]
        if made:
            self._send(signals.jobs_enqueued, ids=made)
        return [held.get(key) or calls[key][0] for key in keys]

    def _rule(self, db: DjangoDatabase) -> UniqueRule | None:
        """The rule by which jobs are unique; None if they are not. Where the handler is
        not known, the row of the job type has the rule."""
        rule = self._declared_rule
        if self.options.unique_key is not None:
            rule = rule or UniqueRule()
        elif self._declaration is None:
            rule = job_types.unique_rule(db, self._new.job_type)
        if rule is None:
            return None
        until, on_duplicate = self.options.unique_until, self.options.on_duplicate
        return replace(
            rule,
            until=until or rule.until,
            on_duplicate=on_duplicate or rule.on_duplicate,
        )

    def _unique(self, new: NewJob, rule: UniqueRule) -> NewJob:
        until_started, text = rule.until == "started", self.options.unique_key
        if text is None:
            return replace(
                new, unique_rule=rule.json, unique_until_started=until_started
            )
        key = unique_keys.key_of_text(new.job_type, text)
        return replace(new, unique_key=key, unique_until_started=until_started)

    def _shared_key(self, rule: UniqueRule) -> str:
        """The words for what duplicates have in common."""
        if self.options.unique_key is not None:
            return f"unique_key {self.options.unique_key!r}"
        return unique_keys.described(rule.by or True)

    def _existing(self, job: Job, id: UUID, rule: UniqueRule | None) -> Job:
        """The job that exists already, if the caller wants it. Raises DuplicateJob."""
        if job.id == id or rule is None or rule.on_duplicate == "return":
            return job
        raise self._duplicate(job, rule)

    def _duplicate(
        self, job: Job | None, rule: UniqueRule, more: str = ""
    ) -> DuplicateJob:
        which, status = (job.id, job.status) if job else ("?", "gone")
        return DuplicateJob(
            f"Job {which} of type {self._new.job_type!r} is already {status} and has "
            f"the same {self._shared_key(rule)}; there can be one at a time, until it "
            f"is {rule.until}.{more} Nothing was enqueued. With on_duplicate='return' "
            "that job is returned instead.",
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
