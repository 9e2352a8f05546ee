"""Retry rules together with all that can end an attempt, and with the options that a
job has for itself: every two of them meet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count, product
from types import FunctionType
from typing import Any
from uuid import UUID

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from django_jobqueue import (
    Cancel,
    Context,
    Fail,
    InvalidArguments,
    JobTimeout,
    Retry,
    RetryRule,
    Snooze,
    current_job,
    get_job,
    job,
    operations,
    replay,
    retries,
)
from django_jobqueue.backends import task
from django_jobqueue.backends.compat import InvalidTask
from django_jobqueue.domain.registry import registry
from django_jobqueue.models import ArchivedJob, Failure, JobType, QueuedJob
from django_jobqueue.testing import clock, crash, drain, lose_lease, perform
from tests.pairwise import pairwise
from tests.sample import jobs, tasks
from tests.support.hand_driven import HandDriven
from tests.support.selection import some_slow
from tests.support.undone import check_each

pytestmark = pytest.mark.django_db(transaction=True)

NAME = "tests.retry_rules"
# The seconds that each attempt of a job had.
LIMITS: dict[UUID, list[float | None]] = defaultdict(list)


def of_three(attempt: int, exception: BaseException, job: Context) -> float:
    """A wait by all that there is."""
    assert job.job_type.startswith((NAME, __name__))
    return attempt + float(str(exception)) + job.data["ten"]


def of_one(attempt: int) -> timedelta:
    return timedelta(seconds=attempt + 15)


def failing(attempt: int, exception: BaseException, job: Context) -> float:
    raise RuntimeError("a bad rule")


def nothing(attempt: int, exception: BaseException, job: Context) -> None:
    """Leaves the wait to the next one."""


def no_more(attempt: int, exception: BaseException, job: Context) -> float:
    raise Fail("enough")


RULES: dict[str, dict[str, Any]] = {
    "none": {},
    "not retried": {"retry": {OSError: False}},
    "only another one": {"retry": {KeyError: True, Exception: False}},
    "only this one": {"retry": {OSError: True, Exception: False}},
    "one attempt": {"retry": {OSError: RetryRule(max_attempts=1)}},
    "a wait": {"retry": {(OSError, KeyError): RetryRule(backoff=30)}},
    "a function": {"retry": {OSError: of_three}},
    "a failing function": {"retry": {OSError: failing}},
    "a function without a wait": {"retry": {OSError: nothing}},
    "a function that fails the job": {"retry": {OSError: no_more}},
    "for all": {"backoff": of_three},
    "for all, by the attempt": {"backoff": of_one},
    "for all, failing": {"backoff": failing},
    "for all, without a wait": {"backoff": nothing},
}
OWN: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a wait": {"backoff": 40},
    "one attempt": {"max_attempts": 1},
    "a timeout": {"timeout": 5},
    "all": {"backoff": "fixed", "max_attempts": 3, "timeout": timedelta(seconds=5)},
}
KINDS = ("sync", "async", "atomic", "once", "task")
ENDS: dict[str, Callable[[], BaseException]] = {
    "error": lambda: ConnectionError("2"),
    "timeout": lambda: JobTimeout("2"),
    "retry": lambda: Retry("2"),
    "retry after": lambda: Retry("2", after=77),
    "snooze": lambda: Snooze(50),
    "cancel": lambda: Cancel("no"),
    "fail": lambda: Fail("no"),
    "crash": lambda: ConnectionError("2"),
    "lease": lambda: ConnectionError("2"),
}


def end_by(how: str) -> None:
    """End as it says; a worker dies, or its claim is lost, before the first end."""
    here = current_job()
    LIMITS[here.id].append(here.seconds_left)
    if here.crashes == 0:
        {"crash": crash, "lease": lose_lease}.get(how, lambda: None)()
    raise ENDS[how]()


def handle(how: str, ten: int = 10) -> None:
    end_by(how)


async def ahandle(how: str, ten: int = 10) -> None:
    end_by(how)


NUMBERS = count()  # of the job types


def as_task(number: int, **options: Any) -> Any:
    """The handler as a task of this module."""
    copied: Any = FunctionType(handle.__code__, globals(), f"handle_{number}")
    copied.__qualname__ = copied.__name__
    copied.__annotations__ = handle.__annotations__
    copied.__defaults__ = handle.__defaults__
    globals()[copied.__name__] = declared = task(**options)(copied)
    return declared


def enqueue(kind: str, rule: str, own: str, how: str) -> Any:
    """Enqueue such a job of a new type; its id."""
    options: dict[str, Any] = {"max_attempts": 2, "backoff": 20, **RULES[rule]}
    number = next(NUMBERS)
    if kind == "task":
        declared = as_task(number, **options)
        return UUID(declared.using(**OWN[own]).enqueue(how=how, ten=10).id)
    if kind == "once":
        options |= {"delivery": "at_most_once", "max_attempts": 1}
    name = f"{NAME}.{number}"
    declare: Any = job(name=name, atomic=kind == "atomic", **options)
    handler = declare(ahandle if kind == "async" else handle)
    return handler.using(**OWN[own]).enqueue(how=how, ten=10).id


def is_refused(kind: str, rule: str, own: str) -> bool:
    """Whether the options contradict each other."""
    if kind != "once":
        return False
    rules = RULES[rule].get("retry", {}).values()
    return any(value is not False for value in rules) or own in ("a wait", "all")


def wait_of(rule: str, own: str, how: str) -> float:
    """The seconds until the next attempt."""
    if how == "retry after":
        return 77
    of_rule = {"a wait": 30, "a function": 13}
    if how != "retry" and rule in of_rule:
        return of_rule[rule]
    if own in ("a wait", "all"):
        return {"a wait": 40, "all": 60}[own]
    of_type = {
        "for all": 13,
        "for all, by the attempt": 16,
        "for all, failing": 5,  # the default, with the draw of this test
        "for all, without a wait": 5,
    }
    return of_type.get(rule, 20)


def expected(kind: str, rule: str, own: str, how: str) -> tuple[Any, ...]:
    """The status of the job, its attempts, and the wait for the next one."""
    if how == "cancel":
        return "cancelled", 1, None
    if how == "fail" or kind == "once":
        return "failed", 1, None
    if how == "snooze":
        return "queued", 0, 50
    if how not in ("retry", "retry after"):
        final = ("not retried", "only another one", "one attempt")
        if rule in (*final, "a function that fails the job"):
            return "failed", 1, None
    if own == "one attempt":
        return "failed", 1, None
    return "queued", 1, wait_of(rule, own, how)


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test has its own job types, and the same draws."""
    monkeypatch.setattr(retries.random, "random", lambda: 0.5)
    LIMITS.clear()
    before = {declared.name for declared in registry}
    yield
    for name in {declared.name for declared in registry} - before:
        registry.remove(name)


def check(id: UUID, kind: str, rule: str, own: str, how: str) -> None:
    """The job is as the case wants it, where time stands still."""
    found = get_job(id)
    wait = None if found.is_over else found.run_after - timezone.now()
    status, attempts, seconds = expected(kind, rule, own, how)
    assert (found.status, found.attempts) == (status, attempts)
    assert wait == (None if seconds is None else timedelta(seconds=seconds))
    assert found.crashes == int(how in ("crash", "lease"))
    limited = own in ("a timeout", "all")
    assert all((left is not None and left <= 5) == limited for left in LIMITS[id])


@pytest.mark.parametrize("part", some_slow(range(4), [0], "further pairs"))
def test_a_rule_holds_whatever_ends_the_attempt(part: int) -> None:
    """Every two values of kind, rule, own options and end meet in one of the parts."""
    cases = pairwise({"kind": KINDS, "rule": RULES, "own": OWN, "how": ENDS})
    made = {}
    with clock():
        for case in cases[part::4]:
            kind, rule, own, _how = case.values()
            if is_refused(kind, rule, own):
                refused = (ImproperlyConfigured, InvalidArguments, InvalidTask)
                with pytest.raises(refused):
                    enqueue(**case)
            else:
                made[enqueue(**case)] = case.values()
        drain(raise_errors=False)
        check_each(check, ((id, *case) for id, case in made.items()), least=20)


def test_a_worker_applies_the_same_rules(worker: HandDriven) -> None:
    id = enqueue("async", "a function", "all", "error")
    worker.work()
    found = get_job(id)
    assert (found.status, found.attempts) == ("queued", 1)
    (failure,) = Failure.objects.all()
    assert failure.reason == "the wait for OSError"
    QueuedJob.objects.update(run_after=timezone.now(), attempts=2)
    worker.work()
    (over,) = ArchivedJob.objects.all()
    assert (over.status, over.attempts, over.effective_max_attempts) == ("failed", 3, 3)
    assert (over.timeout, over.backoff) == (timedelta(seconds=5), {"policy": "fixed"})


def test_a_replay_keeps_the_options_of_the_job() -> None:
    id = enqueue("sync", "none", "all", "fail")
    drain(raise_errors=False)
    again = replay(id)
    assert (again.timeout, again.max_attempts) == (timedelta(seconds=5), 3)
    assert again.backoff == {"policy": "fixed"}
    drain(raise_errors=False)
    limits = [left or 0 for left in LIMITS[id] + LIMITS[again.id]]
    assert len(limits) == 2
    assert max(limits) <= 5


def test_an_override_is_for_jobs_without_options_of_their_own() -> None:
    ids = [enqueue("sync", "none", own, "error") for own in ("nothing", "all")]
    for id in ids:
        operations.override(
            get_job(id).job_type, timeout=timedelta(seconds=50), max_attempts=1
        )
    drain(raise_errors=False)
    assert [get_job(id).status for id in ids] == ["failed", "queued"]
    limits = [left for id in ids for left in LIMITS[id]]
    assert [left is not None and round(left, -1) for left in limits] == [50, 0]


def test_a_function_is_refused_as_an_option_of_one_job() -> None:
    handlers: tuple[Any, ...] = (jobs.fail, tasks.add)
    for handler, function in product(handlers, (of_one, retries.respect_retry_after)):
        with pytest.raises(InvalidArguments) as caught:
            handler.using(backoff=function).enqueue(1)
        said = str(caught.value)
        assert said.startswith("backoff must be a policy's name, one with arg")
        assert said.endswith(
            "a function cannot be stored with the job. State it where the handler is "
            "declared, for all of its jobs."
        )


def test_a_backoff_that_plain_sql_wrote_does_not_count() -> None:
    stored = ["5", '"fixed"', '{"policy": "mine"}', "[]", "null"]
    with clock(), connection.cursor() as cursor:
        ids = [enqueue("sync", "none", "nothing", "error") for _ in stored]
        cursor.executemany(
            "UPDATE jobqueue_queuedjob SET backoff = %s::jsonb WHERE id = %s",
            list(zip(stored, ids, strict=True)),
        )
        drain(raise_errors=False)
        check_each(check, ((id, "sync", "none", "nothing", "error") for id in ids))


def check_performed(rule: str) -> None:
    options: dict[str, Any] = {"max_attempts": 2, "backoff": 20, **RULES[rule]}
    handler = job(name=f"{NAME}.{rule}".replace(" ", "_"), **options)(handle)
    status, _, seconds = expected("sync", rule, "nothing", "error")
    outcome = perform(handler, {"how": "error", "ten": 10})
    assert (outcome.verb.value == "retry") == (status == "queued")
    assert outcome.wait == timedelta(seconds=seconds or 0)
    with (
        override_settings(JOBQUEUE={"MODE": "immediate"}),
        pytest.raises(ConnectionError),
    ):
        handler.using(timeout=5, backoff=40).enqueue(how="error", ten=10)
    performed, at_once = (left for limits in LIMITS.values() for left in limits)
    LIMITS.clear()
    assert performed is None or performed > 5
    assert at_once is not None
    assert at_once <= 5


def test_perform_and_immediate_mode_apply_the_rules() -> None:
    check_each(check_performed, ((rule,) for rule in RULES))


def test_the_row_of_the_type_tells_the_rules() -> None:
    id = enqueue("sync", "a wait", "nothing", "error")
    told = {"retry": True, "max_attempts": None, "backoff": "fixed(wait=0:00:30)"}
    rules = [{"exception": name, **told} for name in ("OSError", "KeyError")]
    assert JobType.objects.get(name=get_job(id).job_type).retry == rules
