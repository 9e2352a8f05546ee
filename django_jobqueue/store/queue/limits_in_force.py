"""What operators and the code say of job types together: overrides, and limits."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Final, NamedTuple

from django_jobqueue.domain.rates import NO_RATE
from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue import buckets

_OF_KEYS: Final = f"""
  FROM jobqueue_keyoverride AS said
 WHERE {buckets.OF_LIMIT.format(column="said.limit_key", name="held.name")}
"""
IN_FORCE: Final = f"""
SELECT type.name, type.priority_override, type.max_attempts_override,
       type.timeout_override,
       CASE type.concurrency_override WHEN -1 THEN NULL
            ELSE coalesce(type.concurrency_override, type.concurrency) END,
       type.limit_name,
       CASE held.concurrency_override WHEN -1 THEN NULL
            ELSE coalesce(held.concurrency_override, held.concurrency) END,
       (SELECT max(CASE said.concurrency WHEN -1 THEN 2147483647
                        ELSE said.concurrency END) {_OF_KEYS}),
       {buckets.IN_FORCE.format(row="type")} IS NOT NULL,
       {buckets.IN_FORCE.format(row="held")} IS NOT NULL
         OR EXISTS (SELECT {_OF_KEYS} AND said.rate <> '{NO_RATE}'),
       EXISTS (SELECT {_OF_KEYS} AND said.share > 1),
       type.weight_rule IS NOT NULL, coalesce(held.strict, false)
  FROM jobqueue_jobtype AS type
  LEFT JOIN jobqueue_keylimit AS held ON held.name = type.limit_name
"""
IN_FORCE_OF: Final = f"{IN_FORCE} WHERE type.name = ANY (%(names)s::text[])"


class Overrides(NamedTuple):
    """An operator's overrides of a job type; None is not set."""

    priority: int | None
    max_attempts: int | None
    timeout: timedelta | None
    concurrency: int | None
    limit_name: str | None = None  # its limit by key
    key_concurrency: int | None = None  # the limit of each key
    most_of_one_key: int | None = None  # the greatest that is said of one key alone
    has_rate: bool = False  # of starts
    key_has_rate: bool = False  # each key of its limit, or some
    keys_have_shares: bool = False  # some of them: more than one job in a turn
    counts_weights: bool = False  # one of these rates
    keys_keep_order: bool = False  # a key waits for the retry of its first job


class KeyLimit(NamedTuple):
    """The limit by key of a job type."""

    name: str
    concurrency: int | None  # of each key; None is unlimited: the keys only take turns
    most_of_one_key: int | None = None  # the greatest that is said of one key alone
    has_rate: bool = False  # of starts of each key, or of some
    has_shares: bool = False  # some keys have more than one job in a turn
    strict: bool = False  # a key waits for the retry of its first job

    @classmethod
    def in_force(cls, overrides: Overrides) -> KeyLimit | None:
        """The limit of a job type in the database; None if it has none."""
        if overrides.limit_name is None:
            return None
        return cls(
            overrides.limit_name,
            overrides.key_concurrency,
            overrides.most_of_one_key,
            overrides.key_has_rate,
            overrides.keys_have_shares,
            overrides.keys_keep_order,
        )

    @property
    def is_counted(self) -> bool:
        """True if some key has a limit, so that running jobs are counted."""
        return self.concurrency is not None or self.most_of_one_key is not None

    @property
    def most(self) -> int | None:
        """How many jobs of one key may run, at most; None is unlimited."""
        if self.concurrency is None:
            return None
        return max(self.concurrency, self.most_of_one_key or 0)


class Limits(NamedTuple):
    """The limits of a job type that are in force."""

    is_limited: bool = False  # jobs of it that run
    has_rate: bool = False  # starts of it
    counts_weights: bool = False  # by its rate, or by that of its keys
    keys: KeyLimit | None = None

    @classmethod
    def in_force(cls, overrides: Overrides) -> Limits:
        """The limits of a job type in the database."""
        return cls(
            overrides.concurrency is not None,
            overrides.has_rate,
            overrides.counts_weights,
            KeyLimit.in_force(overrides),
        )

    @property
    def are_counted(self) -> bool:
        """True if a job that ends may make room for another one."""
        if self.keys is not None:
            return self.keys.is_counted or self.keys.strict
        return self.is_limited


def overrides(
    db: Database, names: Collection[str] | None = None
) -> dict[str, Overrides]:
    """The overrides of each of these job types, by default of all, and the limits in
    force."""
    if names is None:
        rows = db.fetch(IN_FORCE)
    else:
        rows = db.fetch(IN_FORCE_OF, {"names": sorted(names)}) if names else []
    return {name: Overrides(*values) for name, *values in rows}
