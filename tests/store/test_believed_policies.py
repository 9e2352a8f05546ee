"""A worker whose policies are old claims no more than the policies that are in force
allow: each pair of what it believes and what is.

It may claim nothing, until it has read them again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest

from django_jobqueue.domain import key_limits
from django_jobqueue.models import Bucket, JobType, KeyLimit, KeyOverride, QueuedJob
from django_jobqueue.store.connection import Database, DjangoDatabase
from django_jobqueue.store.queue import claim
from django_jobqueue.store.queue.claim_keyed import KeyedLane, adopt, claim_keyed
from django_jobqueue.store.queue.claim_keyed_rated import claim_keyed_rated
from django_jobqueue.store.queue.claim_rated import claim_rated
from django_jobqueue.store.queue.claim_weighed import claim_keyed_weighed, claim_weighed
from django_jobqueue.store.queue.lanes import START, LaneMark, Mark
from django_jobqueue.store.rows import ClaimedJob, Lane
from tests.sample.jobs import write_keyed
from tests.store.rows import KEYED, make_many, register
from tests.support.undone import check_each, undone

ONE = "1/600s burst 1"
WAITING = 4
LANE = Lane("default", 0, KEYED)
RULE = json.loads(key_limits.rule_json(write_keyed.declaration) or "null")

WEIGHED = {"by": "weight", "default": 1, "of_type": True, "of_key": True}

# What is declared: of the type, and of each key; None: there are no keys.
Policy = tuple[Mapping[str, Any], Mapping[str, Any] | None]
POLICIES: dict[str, Policy] = {
    "nothing": ({}, None),
    "concurrency": ({"concurrency": 1}, None),
    "a rate": ({"rate": ONE}, None),
    "both": ({"concurrency": 1, "rate": ONE}, None),
    "turns of keys": ({}, {}),
    "keys": ({}, {"concurrency": 1}),
    "keys and concurrency": ({"concurrency": 1}, {"concurrency": 1}),
    "keys with a rate": ({}, {"rate": ONE}),
    "keys and a rate": ({"rate": ONE}, {"concurrency": 1}),
    "weights": ({"rate": ONE, "weight_rule": WEIGHED}, None),
    "weights and keys": ({"rate": ONE, "weight_rule": WEIGHED}, {"concurrency": 1}),
    "weights of keys": ({"weight_rule": WEIGHED}, {"rate": ONE}),
    "an override of concurrency": ({"concurrency_override": 1}, None),
    "an override of the rate": ({"rate_override": ONE}, None),
    "an override of keys": ({}, {"concurrency_override": 1}),
    "an override of the keys' rate": ({}, {"rate_override": ONE}),
    "a rate of one key": ({}, {"own_rate": ONE}),
    "unlimited by operators": (
        {
            "concurrency": 1,
            "concurrency_override": -1,
            "rate": ONE,
            "rate_override": "unlimited",
        },
        None,
    ),
}
# All others make a worker claim as one of these does.
BELIEVED = [
    "nothing",
    "concurrency",
    "a rate",
    "weights",
    "turns of keys",
    "keys",
    "keys and concurrency",
    "keys with a rate",
    "weights and keys",
]
UNLIMITED = {"nothing", "turns of keys", "unlimited by operators"}


def declare(name: str) -> None:
    """Let this be in force from now on."""
    of_type, of_keys = POLICIES[name]
    nothing = dict.fromkeys(
        ("concurrency", "concurrency_override", "rate", "rate_override")
    )
    has_keys = of_keys is not None
    JobType.objects.filter(pk=KEYED).update(
        **{**nothing, "weight_rule": None, **of_type},
        limit_name=KEYED if has_keys else None,
        limit_rule=RULE if has_keys else None,
    )
    own_rate = (of_keys or {}).get("own_rate")
    KeyOverride.objects.all().delete()
    if own_rate is not None:
        KeyOverride.objects.create(limit_key=f"{KEYED} a", rate=own_rate)
    of_all = {k: v for k, v in (of_keys or {}).items() if k != "own_rate"}
    KeyLimit.objects.filter(pk=KEYED).update(**{**nothing, **of_all})


def claims(db: Database, worker: int, believed: str) -> list[ClaimedJob]:
    """What a worker claims that believes this to be in force."""
    of_type, of_keys = POLICIES[believed]
    is_limited = 1 in (of_type.get("concurrency"), of_type.get("concurrency_override"))
    is_limited &= of_type.get("concurrency_override") != -1
    has_rate = ONE in (of_type.get("rate"), of_type.get("rate_override"))
    has_rate &= of_type.get("rate_override") != "unlimited"
    marks = [LaneMark(LANE)]
    if of_keys is None:
        if has_rate:
            by_rate = claim_weighed if "weight_rule" in of_type else claim_rated
            return by_rate(db, worker, marks, WAITING)[0]
        take = claim.claim_limited if is_limited else claim.claim
        return take(db, worker, marks, WAITING)
    since: Mark | None = START
    while since is not None:
        _, since = adopt(db, LANE, since)
    is_counted = {1} <= {*of_keys.values()}
    is_rated = has_rate or ONE in of_keys.values()
    keyed = KeyedLane(
        lane=LANE,
        limit_name=KEYED,
        locks_limit=is_counted or is_rated,
        locks_type=is_limited or is_rated,
        each=WAITING,
    )
    if is_rated:
        by_rates = (
            claim_keyed_weighed if "weight_rule" in of_type else claim_keyed_rated
        )
        return by_rates(db, worker, keyed, WAITING)[0]
    return claim_keyed(db, worker, keyed, WAITING)


@pytest.fixture
def db(db: None) -> DjangoDatabase:
    """The connection of the test, and jobs of one key."""
    make_many(WAITING, KEYED, data={"journal": "/dev/null", "key": "a"})
    return DjangoDatabase()


def test_no_claim_takes_more_than_what_is_in_force_allows(db: DjangoDatabase) -> None:
    worker = register(db)

    @undone()
    def check(believed: str, in_force: str) -> None:
        declare(in_force)
        most = WAITING if in_force in UNLIMITED else 1
        claimed = claims(db, worker, believed)
        claimed += claims(db, worker, believed)
        assert len(claimed) <= most
        if believed == in_force:
            assert len(claimed) == most
        has_rate = in_force == "both" or any(
            word in in_force for word in ("rate", "weights")
        )
        assert Bucket.objects.exists() is (has_rate and bool(claimed))

    itself = ((name, name) for name in POLICIES if name not in BELIEVED)
    check_each(check, [*product(BELIEVED, POLICIES), *itself], least=171)


def test_nor_does_a_claim_of_quarantined_jobs(db: DjangoDatabase) -> None:
    worker = register(db)
    QueuedJob.objects.update(quarantined=True)

    @undone()
    def check(in_force: str) -> None:
        declare(in_force)
        tries = [
            claim.claim_quarantined(db, worker, [KEYED], None)
            for _ in range(WAITING + 1)
        ]
        assert sum(map(len, tries)) == (WAITING if in_force in UNLIMITED else 1)

    check_each(check, [(name,) for name in POLICIES], least=18)
