"""Moves waiting jobs to another database of the project."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self
from uuid import UUID

from django.db import DatabaseError, connections

from django_jobqueue.conf import conf
from django_jobqueue.contrib.transfer import moving_jobs
from django_jobqueue.contrib.transfer.moving_jobs import BATCH, Holders
from django_jobqueue.domain.registry import OWN, registry
from django_jobqueue.exceptions import InvalidArguments, JobQueueError
from django_jobqueue.operations.audit_log import record
from django_jobqueue.processes import identity
from django_jobqueue.search.selection import Selection
from django_jobqueue.store import database_identity, job_types
from django_jobqueue.store import find as store_find
from django_jobqueue.store.bulk.selected_ids import selected_ids
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue import release

# Why jobs stay; keys of the JSON that the command prints.
AT_MOST_ONCE: Final = "at_most_once"
OWN_TYPE: Final = "own_type"  # they are about rows of this database
ID_EXISTS: Final = "id_exists"
KEY_EXISTS: Final = "unique_key_exists"

PATIENCE: Final = 5.0  # seconds that rows which others have locked are waited for
PAUSE: Final = 0.05  # seconds between two tries


class MovePlan(NamedTuple):
    """The jobs that a move would take."""

    total: int
    skipped: dict[str, int]  # jobs that stay, by reason
    job_types: Collection[str]  # of the jobs that are moved
    queues: Collection[str]
    undeclared: Collection[str]  # job types that are not there yet, but in the code
    unknown: Collection[str]  # job types that are not there, and not in the code


@dataclass(slots=True)
class Move:
    """Moves jobs to the database ``to``; a context manager, which leaves nothing held
    unless the process is killed inside, or a database fails.

    Whatever happens, each job is in one of both databases in the end, once: the next
    move to the same database goes on with what this one holds. Raises InvalidArguments
    if jobs cannot be moved there.
    """

    to: str
    by: str = ""
    skipped: Counter[str] = field(default_factory=Counter)
    others: int = 0  # moves that go on beside this one
    held: int = 0  # jobs that could not be released, since others locked their rows
    database: str = ""  # the alias of the last statement, which may have failed
    _here: DjangoDatabase = field(init=False)
    _there: DjangoDatabase = field(init=False)
    _holders: dict[str, int] = field(default_factory=dict, init=False)  # by alias
    _owners: dict[str, str] = field(default_factory=dict, init=False)  # by alias

    def __enter__(self) -> Self:
        self._here, self._there = DjangoDatabase(), DjangoDatabase(self.to)
        for db in (self._here, self._there):
            if connections[db.alias].in_atomic_block:
                raise InvalidArguments(
                    f"A transaction is open on the database {db.alias!r}. A move "
                    "commits step by step: call it outside of transaction.atomic()."
                )
        same = self._here.alias == self._there.alias
        with self._at(self._there):
            same = same or moving_jobs.have_same_tables(self._here, self._there)
            identity_there = database_identity.identity(self._there)
        if same:
            raise InvalidArguments(
                f"The jobs are in the database {self.to!r} already: name another one."
            )
        self._owners = {
            self._here.alias: f"to {identity_there}",
            self._there.alias: f"from {database_identity.identity(self._here)}",
        }
        return self

    @property
    def has_begun(self) -> bool:
        """True if it may hold jobs."""
        return bool(self._holders)

    def __exit__(self, error: object, *_: object) -> None:
        failed = self.database
        with suppress(DatabaseError) if error else nullcontext():
            for db in (self._here, self._there):
                if holder := self._holders.get(db.alias):
                    with self._at(db):
                        moving_jobs.forget(db, holder)
                        self.held += len(moving_jobs.held(db, holder))
        self.database = failed

    @contextmanager
    def _at(self, db: DjangoDatabase) -> Iterator[DjangoDatabase]:
        """Statements on this database."""
        self.database = db.alias
        yield db
        self.database = self._here.alias

    def plan(self, selection: Selection) -> MovePlan:
        """Preview the move of these jobs."""
        skipped: Counter[str] = Counter()
        movable = []
        for one in moving_jobs.count(self._here, selection):
            if one.job_type.startswith(OWN):
                skipped[OWN_TYPE] += one.jobs
            elif one.is_at_most_once:
                skipped[AT_MOST_ONCE] += one.jobs
            else:
                movable.append(one)
        names = sorted({one.job_type for one in movable})
        with self._at(self._there) as there:
            known = store_find.known_names(there)
        follow = moving_jobs.followers(self._here, selection)
        missing = sorted({*names, *follow}.difference(known))
        declared = [name for name in missing if registry.get(name) is not None]
        return MovePlan(
            sum(one.jobs for one in movable),
            dict(skipped),
            names,
            sorted({one.queue for one in movable}),
            declared,
            [name for name in missing if name not in declared],
        )

    def interrupted(self) -> int:
        """How many jobs other moves to this database hold, here or there."""
        numbers = []
        for db in (self._here, self._there):
            with self._at(db):
                numbers.append(moving_jobs.count_held(db, self._owners[db.alias]))
        return max(numbers)

    def steps(
        self, selection: Selection | None, undeclared: Collection[str] = ()
    ) -> Iterator[list[UUID]]:
        """End what a move that died has begun, then move these jobs, some at a time;
        yields the ids of those that were moved. ``undeclared`` are declared before.
        Raises JobQueueError if another move takes over."""
        for db in (self._here, self._there):
            self._register(db)
        if ids := self._end_the_last_one():
            yield self._recorded(ids)
        declarations = [registry.get(name) for name in undeclared]
        with self._at(self._there) as there:
            job_types.declare(there, [one for one in declarations if one is not None])
        if selection is not None:
            for ids in selected_ids(self._here, selection, most=BATCH):
                yield self._recorded(self._move(ids))

    def _register(self, db: DjangoDatabase) -> None:
        pid = os.getpid()
        with self._at(db):
            self._holders[db.alias] = moving_jobs.register(
                db,
                {
                    "name": self._name(db),
                    "owner": self._owners[db.alias],
                    "host": identity.host(),
                    "pid": pid,
                    "identity": identity.identity(pid),
                    "lease": conf.lease,
                },
            )

    def _name(self, db: DjangoDatabase) -> str:
        """The name, for people, of the row that holds jobs in this database."""
        if db is self._here:
            return f"move to {self.to}"[:200]
        return f"move from {self._here.alias}"[:200]

    def _end_the_last_one(self) -> list[UUID]:
        """Take over from moves that died, here first: from then on they can delete
        nothing. Returns the ids of the jobs that this moved."""
        others: list[Holders] = []
        for db in (self._here, self._there):
            with self._at(db):
                holder, owner = self._holders[db.alias], self._owners[db.alias]
                others.append(
                    moving_jobs.take_over(db, owner, holder, identity.is_dead)
                )
        self.others = max(each.alive for each in others)
        if not any(each.taken_over for each in others):
            return []
        with self._at(self._there) as there:
            staged = moving_jobs.held(there, self._holders[there.alias])
        self._delete(staged)
        # What is here still, or is over here, was not moved. All else was deleted here
        # by the move that died.
        stay = moving_jobs.existing(self._here, staged)
        self._release(stay)
        return [id for id in staged if id not in stay]

    def _move(self, ids: Sequence[UUID]) -> list[UUID]:
        """Move those of these jobs that can be moved; returns their ids."""
        here, there = self._here, self._there
        for db in (here, there):
            with self._at(db):
                if not moving_jobs.renew(db, self._holders[db.alias], conf.lease):
                    raise JobQueueError(
                        "Another move has taken over, since this one did nothing for "
                        f"{conf.lease:g} seconds. It continues with these jobs."
                    )
        holder = self._holders[here.alias]
        if not (held := moving_jobs.hold(here, holder, ids)):
            return []
        jobs = moving_jobs.read(here, holder, held)
        with self._at(there):
            staged = moving_jobs.stage(there, self._holders[there.alias], jobs.values())
            refused = list(jobs.keys() - set(staged))
            existing = moving_jobs.existing(there, refused) if refused else set()
        self.skipped[ID_EXISTS] += len(existing)
        self.skipped[KEY_EXISTS] += len(refused) - len(existing)
        moved = self._delete(staged)
        self._release(set(staged).difference(moved))
        return moved

    def _delete(self, staged: Sequence[UUID]) -> list[UUID]:
        """Delete here what is held there, too; returns the ids of what was deleted."""
        holder = self._holders[self._here.alias]
        return moving_jobs.delete(self._here, holder, staged)

    def _release(self, stay: Collection[UUID]) -> None:
        """Let the jobs that are held wait again: there, but for those that stay, and
        then here."""
        with self._at(self._there) as there:
            moving_jobs.drop(there, self._holders[there.alias], list(stay))
        for db in (self._there, self._here):
            with self._at(db):
                _give_back(db, self._holders[db.alias])

    def _recorded(self, ids: list[UUID]) -> list[UUID]:
        record("move", self.by, len(ids), {"to": self.to}, ids=ids)
        return ids


def _give_back(db: DjangoDatabase, holder: int) -> None:
    """Let what is held wait again. What others have locked is held a little longer: by
    the next batch, or by the next move, at the latest."""
    until = time.monotonic() + PATIENCE
    release.recover(db, holder, [])
    while release.count_lost(db, holder, []) and time.monotonic() < until:
        time.sleep(PAUSE)
        release.recover(db, holder, [])
