"""Job types: declared by the code, overridden and paused by operators."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial

import psycopg
from django.test import override_settings
from django.utils import timezone

from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.domain.followers import Follower
from django_jobqueue.domain.job_options import OF_TYPE
from django_jobqueue.domain.per_key import PerKey
from django_jobqueue.domain.policy import Policy
from django_jobqueue.domain.rates import Rate
from django_jobqueue.domain.registry import Declaration, registry
from django_jobqueue.domain.retry_rules import ExceptionRule
from django_jobqueue.domain.states import Delivery
from django_jobqueue.models import JobType, Queue
from django_jobqueue.retries import quartic
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.queue.limits_in_force import Overrides, overrides
from tests.store.meanwhile import Hearing, together
from tests.store.rows import ADD, ago, job_type

FULL = Policy(
    queue="mail",
    priority=7,
    max_attempts=9,
    timeout=timedelta(seconds=1.5),
    concurrency=3,
    atomic=True,
    expires_in=timedelta(hours=2),
    max_crashes=4,
    sensitive=frozenset({"token", "card"}),
    unique=("a", "b"),
    on_complete=(Follower("shop.report"),),
)


IN_THE_ROW = {
    "queue": "letters",
    "priority": 8,
    "max_attempts": 10,
    "backoff": quartic,
    "timeout": timedelta(seconds=2),
    "delivery": Delivery.AT_MOST_ONCE,
    "concurrency": 4,
    "rate": Rate(100, per=60),
    "per_key": PerKey("a", concurrency=2),
    "atomic": False,
    "expires_in": timedelta(hours=3),
    "max_crashes": 5,
    "sensitive": frozenset({"token"}),
    "indexed": ("a",),
    "summary": "letter {a}",
    "retry": (ExceptionRule(exception=KeyError, is_retried=False),),
    "unique": ("a",),
    "unique_until": "started",
    "on_duplicate": "return",
    "debounce": timedelta(seconds=30),
    "debounce_max": timedelta(minutes=5),
    "on_success": (Follower("shop.bill"),),
    "on_failure": (Follower("shop.bill"),),
    "on_complete": (Follower("shop.bill"), Follower("shop.report")),
}
COLUMNS = {
    "per_key": ("limit_name", "limit_rule"),
    "delivery": ("delivery", "max_attempts"),
    "unique": ("unique_by", "unique_rule"),
    "unique_until": ("unique_rule",),
    "on_success": ("followers",),
    "on_failure": ("followers",),
    "on_complete": ("followers",),
    "on_duplicate": ("unique_rule",),
    "debounce": ("unique_rule",),
    "debounce_max": ("unique_rule",),
}
# What whoever enqueues or runs a job needs the code for.
OF_THE_PROCESS = {"takes_context", "capture", "middleware"}


def declared(name: str = "shop.send", policy: Policy = FULL) -> Declaration:
    """A declaration of a job type that has no row yet."""
    known = registry.get(ADD)
    assert known is not None
    return known._replace(name=name, policy=policy)


def stamps() -> dict[str, object]:
    """When each row was last written by a declaration."""
    return dict(JobType.objects.values_list("name", "declared_at"))


def test_what_the_code_says_is_a_row(own: OwnConnection) -> None:
    job_types.declare(own, [declared()])
    row = JobType.objects.get(name="shop.send")
    assert (row.handler, row.description) == ("tests.sample.jobs:add", "Return a sum.")
    assert (row.queue, row.priority, row.max_attempts) == ("mail", 7, 9)
    assert (row.timeout, row.expires_in) == (FULL.timeout, FULL.expires_in)
    assert (row.concurrency, row.atomic, row.max_crashes) == (3, True, 4)
    assert (row.delivery, row.backoff) == ("at_least_once", "exponential")
    assert row.sensitive == ["card", "token"]
    assert (row.unique_by, row.followers) == ("a, b", {"on_complete": ["shop.report"]})
    assert row.follower_arguments == []
    assert row.created_at <= row.declared_at <= timezone.now()
    assert (row.paused, row.priority_override) == (False, None)


def test_what_the_code_leaves_open_is_the_setting(own: OwnConnection) -> None:
    settings = {"MAX_ATTEMPTS": None, "TIMEOUT": None, "MAX_CRASHES": 8}
    at_most_once = Policy(delivery=Delivery.AT_MOST_ONCE)
    with override_settings(JOBQUEUE=settings):
        job_types.declare(
            own, [declared(policy=Policy()), declared("shop.once", at_most_once)]
        )
    columns = ("max_attempts", "timeout", "max_crashes", "delivery")
    rows = JobType.objects.filter(name__startswith="shop.").order_by("-name")
    assert [*rows.values_list(*columns)] == [
        (None, None, 8, "at_least_once"),
        (1, None, 8, "at_most_once"),
    ]


def test_declaring_what_is_declared_already_writes_nothing(own: OwnConnection) -> None:
    job_type("gone.handler", priority=3)
    job_types.declare(own, [declared(), *registry])
    before = stamps()
    job_types.declare(own, [declared(), *registry])
    job_types.declare(own, [])
    assert stamps() == before
    assert JobType.objects.get(name="gone.handler").priority == 3


def test_what_changed_in_the_code_is_written_to_one_row(own: OwnConnection) -> None:
    """In what the next cases leave out: without a value, or with one of no name."""
    for policy in (
        replace(FULL, max_attempts=None),
        replace(FULL, timeout=None),
        replace(FULL, concurrency=None),
        replace(FULL, expires_in=None),
        replace(FULL, sensitive=frozenset()),
        replace(FULL, backoff=lambda attempt: timedelta(0)),
    ):
        job_types.declare(own, [declared(), declared("shop.other")])
        before = stamps()
        job_types.declare(own, [declared(policy=policy), declared("shop.other")])
        after = stamps()
        assert [name for name in after if after[name] != before[name]] == ["shop.send"]
        job_types.declare(own, [declared(policy=policy)])
        assert stamps() == after


def test_each_option_of_a_job_type_is_in_its_row_or_of_the_process_alone() -> None:
    assert {*IN_THE_ROW} | OF_THE_PROCESS == {*OF_TYPE}
    assert not {*IN_THE_ROW} & OF_THE_PROCESS


def test_each_option_of_the_row_is_written_if_it_changes(own: OwnConnection) -> None:
    row = JobType.objects.filter(name="shop.send").values()
    written = {}
    for option, value in IN_THE_ROW.items():
        job_types.declare(own, [declared()])
        before = row.get()
        job_types.declare(own, [declared(policy=replace(FULL, **{option: value}))])
        after = row.get()
        written[option] = {name for name in after if after[name] != before[name]}
    assert written == {
        option: {"declared_at", *COLUMNS.get(option, (option,))}
        for option in IN_THE_ROW
    }


def test_what_operators_say_is_never_touched_by_the_code(own: OwnConnection) -> None:
    job_types.declare(own, [declared()])
    said = {
        "priority_override": 1,
        "max_attempts_override": -1,
        "timeout_override": timedelta(seconds=5),
        "concurrency_override": 0,
        "keep_succeeded_override": timedelta(days=1),
        "keep_unsuccessful_override": timedelta(days=2),
        "paused": True,
        "paused_by": "anna",
        "paused_reason": "a bug",
        "resume_at": ago(-60),
    }
    JobType.objects.filter(name="shop.send").update(**said)
    job_types.declare(own, [declared(policy=Policy())])
    assert JobType.objects.filter(name="shop.send").values(*said).get() == said


def test_many_workers_that_start_at_once_declare_without_a_deadlock(
    own: OwnConnection, other: OwnConnection
) -> None:
    several = [declared(f"shop.t{number}") for number in range(30)]
    Schedule.objects.all().delete()
    JobType.objects.all().delete()
    together(
        [
            partial(job_types.declare, own, several),
            partial(job_types.declare, other, several[::-1]),
        ]
    )
    assert JobType.objects.count() == 30


def test_overrides_and_the_concurrency_in_force_are_read(own: OwnConnection) -> None:
    timeout = timedelta(seconds=1.5)
    said = {"priority_override": 0, "max_attempts_override": -1}
    job_type("a", concurrency=5, priority=3, max_attempts=2)
    job_type(
        "b", concurrency=5, concurrency_override=2, timeout_override=timeout, **said
    )
    job_type("c", concurrency=5, concurrency_override=-1)
    job_type("d", concurrency_override=0)
    job_type("e")
    for db in (own, DjangoDatabase()):
        found = overrides(db)
        assert [found[name] for name in "abcde"] == [
            Overrides(None, None, None, 5),
            Overrides(0, -1, timeout, 2),
            Overrides(None, None, None, None),
            Overrides(None, None, None, 0),
            Overrides(None, None, None, None),
        ]


def test_a_paused_job_type_says_who_and_why_until_it_is_resumed(
    own: OwnConnection, ear: Hearing
) -> None:
    until, before, names = ago(-60), timezone.now(), [ADD, "nobody.knows"]
    changed = job_types.pause(own, names, by="anna", reason="a bug", resume_at=until)
    assert changed == [ADD]
    row = JobType.objects.get(name=ADD)
    assert (row.paused, row.paused_by, row.paused_reason) == (True, "anna", "a bug")
    assert row.paused_at is not None
    assert before <= row.paused_at <= timezone.now()
    assert row.resume_at == until
    assert JobType.objects.filter(paused=True).count() == 1
    assert ear.heard() == ["t:"]
    assert job_types.resume(own, names) == [ADD]
    row.refresh_from_db()
    assert (row.paused, row.paused_by, row.paused_reason) == (False, "", "")
    assert (row.paused_at, row.resume_at) == (None, None)
    assert ear.heard() == ["t:"]


def test_a_queue_without_a_row_can_be_paused(own: OwnConnection, ear: Hearing) -> None:
    until = ago(-60)
    for reason in ("first", "second"):
        changed = job_types.pause(
            own, ["a", "b"], queues=True, by="anna", reason=reason, resume_at=until
        )
        assert sorted(changed) == ["a", "b"]
    row = Queue.objects.get(name="a")
    assert (row.paused, row.paused_by, row.paused_reason) == (True, "anna", "second")
    assert row.resume_at == until
    assert ear.heard() == ["t:", "t:"]
    assert job_types.resume(own, ["a", "c"], queues=True) == ["a"]
    row.refresh_from_db()
    assert (row.paused, row.paused_at, row.resume_at) == (False, None, None)
    assert Queue.objects.get(name="b").paused


def test_the_database_refuses_a_policy_that_makes_no_sense(own: OwnConnection) -> None:
    taken = []
    for columns in (
        {"delivery": "sometimes"},
        {"max_attempts": 0},
        {"max_attempts_override": 0},
        {"max_attempts_override": -2},
        {"concurrency": -1},
        {"concurrency_override": -2},
        {"priority": 101},
        {"priority_override": -101},
        {"max_crashes": 0},
        {"delivery": "at_most_once", "max_attempts": 2},
        {"name": ""},
    ):
        values = {"name": f"t{len(taken)}", **columns}
        names = ", ".join(values)
        places = ", ".join(f"%({name})s" for name in values)
        try:
            own.run(f"INSERT INTO jobqueue_jobtype ({names}) VALUES ({places})", values)
        except psycopg.errors.CheckViolation:
            continue
        taken.append(columns)
    assert taken == []
