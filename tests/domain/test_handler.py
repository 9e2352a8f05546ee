"""Declaring and enqueueing: what is refused before any database is asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured

from django_jobqueue import Handler, InvalidArguments, enqueue, enqueue_many, job
from django_jobqueue.domain.ids import as_id
from django_jobqueue.domain.registry import registry
from tests.sample import jobs
from tests.support.tables import differing, refusal

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
NAIVE = datetime(2026, 11, 21, 12)  # noqa: DTZ001
ID = UUID("019aa2f0-0000-7000-8000-000000000001")


def nothing() -> None:
    """Do nothing."""


async def nothing_later() -> None: ...


def send(order_id: int) -> None: ...


ADD: Any = jobs.add
ENQUEUES: tuple[Callable[..., Any], ...] = (
    lambda **options: ADD.using(**options),
    lambda **options: enqueue("tests.sample.add", {"a": 1}, **options),
)


def refused(call: Callable[[], Any]) -> str:
    return refusal(InvalidArguments, call)


def undeclared(function: Any, **options: Any) -> str:
    """Why a function is no handler, without its name."""
    said = refusal(ImproperlyConfigured, lambda: job(**options)(function))
    assert registry.get(options.get("name", "")) is None
    return said.removeprefix(f"@job on {__name__}.")


def test_a_handler_is_called_as_the_plain_function_that_it_is() -> None:
    urgent = jobs.add.using(priority=50, run_after=NOON, tags=["a"])
    assert isinstance(urgent, Handler)
    assert urgent is not jobs.add
    assert (urgent.name, urgent(1, 2)) == (jobs.add.name, 3)
    assert jobs.add(2, b=3) == 5
    assert jobs.add.__name__ == "add"
    assert jobs.add.__doc__ == "Return a sum."
    assert repr(jobs.add) == "<handler of job type 'tests.sample.add'>"


def test_what_cannot_be_declared_is_refused_with_the_function() -> None:
    assert undeclared(nothing, name="words.one", colour=5) == (
        "nothing: there is no option 'colour'."
    )
    assert undeclared(nothing, name="two words") == (
        "nothing: name must have no space and no control character: 'two words'."
    )
    assert undeclared(nothing_later, name="words.two", atomic=True) == (
        "nothing_later: atomic=True needs a sync handler; Django has no async "
        "transactions."
    )
    said = "unique names 'oder_id', which is no parameter. Did you mean 'order_id'?"
    assert undeclared(send, unique=("oder_id",)) == f"send: {said}"
    for given in ("mail", 5, ...):
        assert refusal(ImproperlyConfigured, job, given) == (
            f"@job decorates a function, not {given!r}. Give options by name: "
            "@job(queue=…)."
        )
        assert undeclared(given, queue="mail")


FAR = timedelta(days=40_000)
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"queue": ""}, "queue must be a name, not ''."),
    ({"queue": "a b"}, "queue must have no space, comma or control character"),
    ({"priority": 101}, "priority must be a whole number from -100 to 100"),
    ({"priority": True}, "priority must be a whole number from -100 to 100"),
    ({"run_after": NAIVE}, "run_after must be aware of its time zone; datetime"),
    ({"run_after": "now"}, "run_after must be a datetime or a timedelta, not 'now'."),
    ({"run_after": 60}, "run_after must be a datetime or a timedelta, not 60."),
    ({"run_after": FAR}, "run_after must be at most 36,500 days away, not 40000 days"),
    ({"enqueued_by": 7}, "enqueued_by must be a string of at most 1,000 characters."),
    ({"enqueued_by": "x" * 1_001}, "enqueued_by must be a string of at most 1,000 "),
    ({"expires_at": NAIVE}, "expires_at must be aware of its time zone; datetime"),
    ({"expires_at": timedelta(1)}, "expires_at must be a datetime, not datetime.t"),
    ({"tags": [1]}, "tags must be a list of strings, not [1]."),
    ({"tags": "urgent"}, "tags must be a list of strings, not 'urgent'."),
    ({"tags": ["x" * 10_000]}, "tags is 10,004 bytes of JSON; at most 10,000 are allo"),
    ({"id": "7"}, "'7' is not a job id; it must be a UUID."),
    ({"id": 7}, "7 is not a job id; it must be a UUID."),
]


def test_a_wrong_option_of_an_enqueue_is_refused_by_its_name() -> None:
    for call in ENQUEUES:

        def ask(options: dict[str, Any], call: Any = call) -> str:
            return refused(lambda: call(**options))

        assert differing(WRONG, ask, str.startswith) == []


def test_an_id_is_understood_in_its_usual_forms() -> None:
    for text in (str(ID), ID.hex, f"job_{ID}", f"{{{ID}}}", ID):
        assert as_id(text) == ID
    wrong: Any
    for wrong in ("", "job_", "7", f"jobs_{ID}", str(ID)[:-1], None):
        said = refusal(InvalidArguments, as_id, wrong)
        assert said == f"{wrong!r} is not a job id; it must be a UUID."


def test_data_that_does_not_fit_is_refused_before_the_database_is_asked() -> None:
    by_name: Any = enqueue
    assert refused(lambda: ADD.enqueue()) == "tests.sample.jobs.add() is missing 'a'."
    assert refused(lambda: ADD.enqueue(object())).startswith(
        "data['a'] is an object, which JSON does not have"
    )
    assert refused(lambda: by_name("tests.sample.add", {"c": 1})) == (
        "tests.sample.jobs.add() has no parameter 'c'. It is missing 'a'."
    )
    assert refused(lambda: by_name("no.such.type", [1])) == (
        "The data of a job must be an object, not list."
    )
    for given in (5, None, jobs.add):
        said = refused(lambda given=given: by_name(given, {"a": 1}))  # type: ignore[misc]
        assert said.startswith(f"enqueue takes the name of a job type, not {given!r}")
    calls: list[Any] = [{"a": 1}, {"a": 2, "bb": 3}]
    assert refused(lambda: ADD.enqueue_many(calls)) == (
        "calls[1]: tests.sample.jobs.add() has no parameter 'bb'. Did you mean 'b'?"
    )
    # An unknown name, a missing one, no object, another type, and no JSON.
    wrong: Any = ({"a": 1, "c": 2}, {}, [1], {"a": "x"}, {"a": 1, "b": 10**5_000})
    for bad in wrong:
        calls = [{"a": 1}, {"a": 2}, bad, {"a": 3}]
        for many in (ADD.enqueue_many, partial(enqueue_many, "tests.sample.add")):
            assert refusal(InvalidArguments, many, calls).startswith("calls[2]: ")
            assert refusal(InvalidArguments, many, iter(calls)).startswith("calls[2]: ")
    assert refused(lambda: ADD.using(id=ID).enqueue_many([{"a": 1}])) == (
        "id is for one job, not for enqueue_many."
    )
    assert jobs.add.enqueue_many([]) == []


def test_a_job_that_would_expire_before_it_is_due_is_refused() -> None:
    minutes, hour = timedelta(minutes=5), timedelta(hours=1)
    for run_after, expires_at in (
        (NOON + minutes, NOON),
        (NOON, NOON),
        (hour, datetime.now(UTC) + minutes),
    ):
        calls: list[Callable[[], Any]] = [
            partial(call, run_after=run_after, expires_at=expires_at)
            for call in ENQUEUES
        ]
        first, second = {"run_after": run_after}, {"expires_at": expires_at}
        calls.append(lambda f=first, s=second: ADD.using(**f).using(**s))  # type: ignore[misc]
        for call in calls:
            assert refused(call).startswith(
                "expires_at must be later than run_after: the job would"
            )
    jobs.add.using(run_after=NOON, expires_at=NOON + minutes)
