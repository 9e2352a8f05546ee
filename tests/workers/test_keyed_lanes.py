"""When lanes of a type with a limit by key are claimed, and how a job gets its key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_jobqueue import (
    InvalidArguments,
    PerKey,
    enqueue,
    enqueue_many,
    job,
    operations,
    replay,
)
from django_jobqueue.contrib.schedules import operations as schedules
from django_jobqueue.models import JobType, KeyLimit, KeyOverride, QueuedJob
from django_jobqueue.operations import edit_data
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.testing import drain
from tests.sample import jobs
from tests.store.meanwhile import Hearing
from tests.store.rows import KEYED, make
from tests.support.hand_driven import HandDriven, Make
from tests.support.rows import archived
from tests.support.tables import differing, refusal

Declare = Callable[..., Any]
NULL = "/dev/null"


def of_customer(customer: Any) -> None: ...


def of_job(job: str, status: str) -> None: ...


def of_document(customer: int, document: str = "") -> None: ...


def put(keys: str) -> None:
    jobs.write_keyed.enqueue_many([{"journal": NULL, "key": key} for key in keys])


def held(worker: HandDriven) -> str:
    found = (str(attempt.job.limit_key)[-1] for attempt in worker.worker.held)
    return "".join(sorted(found))


def keys() -> list[str]:
    """The keys of all jobs in the queue, without the name of the limit, in order."""
    found = QueuedJob.objects.order_by("run_after", "id")
    return [str(job.limit_key).partition(" ")[2] for job in found]


def test_a_worker_fills_its_slots_as_far_as_each_key_allows(make_worker: Make) -> None:
    first, second = make_worker(threads=3), make_worker(threads=8)
    put("aaaaab")

    first.claim()
    assert held(first) == "aab"
    second.claim()
    assert held(second) == ""
    put("c")
    second.claim(told=True)
    assert held(second) == "c"
    first.complete()
    first.claim()
    assert held(first) == "aa"
    first.work()
    second.complete()
    assert len(archived()) == 7


def test_one_key_without_a_limit_fills_all_slots(make_worker: Make) -> None:
    KeyLimit.objects.update(concurrency=None)
    worker = make_worker(threads=7)
    put("a" * 9 + "b")
    worker.claim()
    assert held(worker) == "aaaaaab"


@pytest.mark.parametrize(
    "change",
    [
        lambda: operations.override_limit(KEYED, 1),
        lambda: operations.override_limit(KEYED, 1, key="a"),
        lambda: KeyLimit.objects.update(concurrency_override=1),
        lambda: KeyOverride.objects.create(limit_key=f"{KEYED} a", concurrency=1),
    ],
    ids=["limit", "key", "limit by SQL", "key by SQL"],
)
def test_a_worker_that_took_a_limit_for_unlimited_follows_at_once(
    make_worker: Make, own: OwnConnection, change: Callable[[], object]
) -> None:
    KeyLimit.objects.update(concurrency=None)
    hearing = Hearing(own)
    worker = make_worker(threads=4)
    worker.claim()
    put("aaa")

    change()
    worker.claim()
    assert held(worker) == ""  # it would not lock the limit
    assert "t:" in hearing.heard()
    worker.dispatcher.policies_changed()
    worker.claim()
    assert held(worker) == "a"


def test_jobs_of_before_the_limit_get_their_key(worker: HandDriven) -> None:
    for run in (worker.work, drain):
        put("aab")
        QueuedJob.objects.update(limit_key=None)
        run()
        found = sorted(job.limit_key for job in archived())
        assert set(found) == {f"{KEYED} a", f"{KEYED} b"}
    assert len(found) == 6


@pytest.mark.usefixtures("transactional_db")
def test_every_way_into_the_queue_gives_a_job_its_key() -> None:
    jobs.write_keyed.enqueue(NULL, 7)
    jobs.write_keyed.enqueue(NULL)
    jobs.write_keyed.enqueue(NULL, None)
    jobs.write_keyed.using(limit_key="own").enqueue(NULL, "x")
    jobs.write_keyed.using(unique_key="u").enqueue(NULL, "unique")
    enqueue(KEYED, {"journal": NULL, "key": "named"})
    enqueue_many(KEYED, [{"journal": NULL, "key": "many"}])
    make(KEYED, data={"key": True})
    make(KEYED, data={"key": "l" * 400})

    *others, long = keys()
    wanted = ["7", "all", "", "own", "unique", "named", "many", "true"]
    assert others == wanted
    assert len(long) < 150


@pytest.mark.usefixtures("transactional_db")
def test_a_replay_keeps_the_key_and_other_data_give_another_one() -> None:
    jobs.write_keyed.using(limit_key="own").enqueue(NULL, "a")
    made = jobs.write_keyed.enqueue(NULL, "a")
    edit_data(made.id, {"journal": NULL, "key": "b"})
    assert keys() == ["own", "b"]
    drain()

    for old in archived():
        replay(old.id)
    assert sorted(keys()) == ["b", "own"]
    replay(old.id, data={"journal": NULL, "key": "c"})
    assert "c" in keys()


def test_followers_and_firings_have_keys_of_their_own(declare: Declare) -> None:
    follow = declare(of_job, per_key=PerKey("job", concurrency=1))
    first = jobs.add.using(on_success=follow).enqueue(1)
    drain(limit=1)
    assert keys() == [str(first.id)]

    handler = declare(of_document, per_key=PerKey("customer", concurrency=2))
    schedules.create("mine", handler, rule="every 7 minutes", data={"customer": 5})
    schedules.run_now("mine")
    assert "5" in keys()


def test_what_cannot_be_a_key_is_refused(declare: Declare) -> None:
    by_anything = declare(of_customer, per_key=PerKey("customer"))
    for key in (1.5, ["a"], {"a": 1}, "k" * 151):
        for call in (
            lambda key=key: by_anything.enqueue(key),
            lambda key=key: by_anything.enqueue_many(
                [{"customer": 1}, {"customer": key}]
            ),
        ):
            with pytest.raises(InvalidArguments, match="key"):
                call()
    with pytest.raises(InvalidArguments, match="no limit by key"):
        jobs.add.using(limit_key="a").enqueue(1)
    with pytest.raises(InvalidArguments, match="limit_key must be a text"):
        jobs.write_keyed.using(limit_key=7)
    assert not QueuedJob.objects.exists()


def test_a_wrong_limit_by_key_is_refused_where_it_is_declared() -> None:
    rows: list[tuple[Any, str]] = [
        (PerKey("customr"), "customr"),
        (PerKey("customr"), "customer"),
        (PerKey("customer", concurrency=0), "at least 1"),
        (PerKey(()), "names no parameter"),
        (PerKey("customer", name="a b"), "no space"),
        (PerKey("customer", strict=True), "add concurrency=1"),
        (PerKey("customer", concurrency=2, strict=True), "add concurrency=1"),
        (PerKey("customer", concurrency=1, strict=1), "must be True or False"),
        (PerKey(7), "must name parameters"),
        ("customer", "must be a PerKey"),
    ]

    def declared(per_key: Any) -> str:
        return refusal(ImproperlyConfigured, lambda: job(per_key=per_key)(of_customer))

    assert differing(rows, declared, lambda got, wanted: wanted in got) == []


def test_a_declared_limit_leaves_the_operators_number(declare: Declare) -> None:
    KeyLimit.objects.create(name="exports", concurrency=1, concurrency_override=2)
    per_key = PerKey("customer", concurrency=3, name="exports")
    export = declare(of_customer, per_key=per_key)
    limit = KeyLimit.objects.get(name="exports")
    assert (limit.concurrency, limit.concurrency_override) == (3, 2)
    assert JobType.objects.get(name=export.name).limit_name == "exports"


@pytest.mark.parametrize(
    ("options", "second"),
    [
        ({"on_duplicate": "replace"}, "2"),
        ({"debounce": 30}, "2"),
        ({"unique_until": 300, "on_duplicate": "return"}, "1"),
        ({"unique_until": "started", "on_duplicate": "return"}, "1"),
    ],
    ids=["replace", "debounce", "window", "until started"],
)
def test_a_unique_job_has_the_key_of_the_data_that_it_holds(
    declare: Declare, options: dict[str, Any], second: str
) -> None:
    per_key = PerKey("customer", concurrency=2)
    handler = declare(of_document, per_key=per_key, unique=("document",), **options)
    handler.enqueue(customer=1, document="a")
    assert keys() == ["1"]
    handler.enqueue(customer=2, document="a")
    assert keys() == [second]
    handler.enqueue_many([{"customer": 3, "document": "b"}])
    handler.using(limit_key="vip").enqueue(customer=4, document="c")
    assert sorted(keys()) == [second, "3", "vip"]


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_a_share_is_of_each_round(make_worker: Make, threads: int) -> None:
    KeyLimit.objects.update(concurrency=None)
    operations.override_key_share(KEYED, 3, key="b")
    put("a" * 12 + "b" * 12 + "c" * 12)
    worker = make_worker(threads=threads)
    started = ""
    while len(started) < 20:
        worker.claim()
        started += held(worker)
        worker.complete()

    counts = Counter(started)
    for other in "ac":
        assert abs(counts["b"] - 3 * counts[other]) <= 3


def test_a_share_keeps_to_the_limit_and_is_cleared(make_worker: Make) -> None:
    operations.override_key_share(KEYED, 5, key="a")  # 2 at once
    put("aaaaaab")
    worker = make_worker(threads=20)
    worker.claim()
    assert held(worker) == "aab"
    worker.work()

    operations.override_key_share(KEYED, None, key="a")
    KeyLimit.objects.update(concurrency=None)
    first = operations.override_key_share(KEYED, 3, key="b", by="anna")
    again = operations.override_key_share(KEYED, 3, key="b")
    assert (first.before, first.after, again.before) == (None, 3, 3)
    assert operations.override_key_share(KEYED, None, key="b").before == 3
    assert not KeyOverride.objects.exists()
    put("bbbaaa")
    worker = make_worker(threads=2)
    worker.claim()
    assert held(worker) == "ab"
