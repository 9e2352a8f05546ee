"""A worker whose policies are old claims no more than the policies that are in force
allow: each pair of what it believes and what is.

It may claim nothing, until it has read them again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from typing import Any
from uuid import UUID

import pytest

from django_jobqueue.domain import key_limits
from django_jobqueue.models import (
    Bucket,
    JobType,
    KeyLimit,
    KeyOverride,
    QueuedJob,
    Worker,
)
from django_jobqueue.stats.why_not_running import Reasons, why_not
from django_jobqueue.store.connection import Database, DjangoDatabase
from django_jobqueue.store.queue import limits_in_force
from django_jobqueue.store.queue.claim_quarantined import claim_quarantined
from django_jobqueue.store.queue.keyed_turn import KeyTurns
from django_jobqueue.store.queue.lane_turn import fill, turn_of
from django_jobqueue.store.queue.lanes import LaneMark
from django_jobqueue.store.queue.limits_in_force import Limits
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


def limits_of(name: str) -> Limits:
    """What a worker believes that has read this."""
    declare(name)
    return Limits.in_force(limits_in_force.overrides(DjangoDatabase())[KEYED])


def claims(db: Database, worker: int, limits: Limits) -> list[ClaimedJob]:
    """What a worker claims in a turn that believes these to be in force."""
    turn, jobs = turn_of(LANE, limits, KeyTurns()), list[ClaimedJob]()
    fill(
        jobs,
        WAITING,
        turn,
        lambda left: turn.claim(db, worker, [LaneMark(LANE)], left),
    )
    return jobs


def waiting() -> dict[UUID, Reasons]:
    """The reasons that are given why jobs do not run."""
    return why_not(
        QueuedJob.objects.filter(status="queued"),
        types={row.name: row for row in JobType.objects.filter(name=KEYED)},
        queues={},
        workers=Worker.objects.all(),
    )


@pytest.fixture
def db(db: None) -> DjangoDatabase:
    """The connection of the test, and jobs of one key."""
    make_many(WAITING, KEYED, data={"journal": "/dev/null", "key": "a"})
    return DjangoDatabase()


@pytest.mark.dear
def test_no_claim_takes_more_than_what_is_in_force_allows(db: DjangoDatabase) -> None:
    worker = register(db)
    limits = {name: limits_of(name) for name in POLICIES}

    @undone()
    def check(believed: str, in_force: str) -> None:
        declare(in_force)
        most = WAITING if in_force in UNLIMITED else 1
        claimed = claims(db, worker, limits[believed])
        claimed += claims(db, worker, limits[believed])
        assert len(claimed) <= most
        if believed == in_force:
            assert len(claimed) == most
        has_rate = in_force == "both" or any(
            word in in_force for word in ("rate", "weights")
        )
        assert Bucket.objects.exists() is (has_rate and bool(claimed))

    itself = ((name, name) for name in POLICIES if name not in BELIEVED)
    check_each(check, [*product(BELIEVED, POLICIES), *itself], least=171)


@pytest.mark.dear
def test_the_reasons_why_a_job_waits_are_those_of_its_claim(db: DjangoDatabase) -> None:
    worker = register(db, job_types=[KEYED])

    @undone()
    def check(in_force: str) -> None:
        limits = limits_of(in_force)
        for _ in range(2):
            before = waiting()
            claimed = {job.id for job in claims(db, worker, limits)}
            for id, reasons in before.items():
                is_held_back = any(reason.about for reason in reasons)
                is_next = reasons == ["it is about to be claimed"]
                assert not (is_held_back and id in claimed)
                assert not (is_next and id not in claimed)
        assert all(any(why.about for why in whys) for whys in waiting().values())

    check_each(check, [(name,) for name in POLICIES], least=18)


@pytest.mark.dear
def test_nor_does_a_claim_of_quarantined_jobs(db: DjangoDatabase) -> None:
    worker = register(db)
    QueuedJob.objects.update(quarantined=True)

    @undone()
    def check(in_force: str) -> None:
        declare(in_force)
        tries = [
            claim_quarantined(db, worker, [KEYED], None) for _ in range(WAITING + 1)
        ]
        assert sum(map(len, tries)) == (WAITING if in_force in UNLIMITED else 1)

    check_each(check, [(name,) for name in POLICIES], least=18)
