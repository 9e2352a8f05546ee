"""Declaring and enqueueing: what is refused before any database is asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_jobqueue import Handler, InvalidArguments, enqueue, enqueue_many, job
from django_jobqueue.domain.ids import as_id
from django_jobqueue.domain.registry import registry
from tests.sample import jobs

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
NAIVE = datetime(2026, 11, 21, 12)  # noqa: DTZ001
ID = UUID("019aa2f0-0000-7000-8000-000000000001")


def nothing() -> None:
    """Do nothing."""


async def nothing_later() -> None: ...


def by_name_add(calls: Any) -> Any:
    return enqueue_many("tests.sample.add", calls)


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(InvalidArguments) as caught:
        call()
    return str(caught.value)


def test_a_handler_is_called_as_the_plain_function_that_it_is() -> None:
    assert jobs.add(2, b=3) == 5
    assert jobs.add.__name__ == "add"
    assert jobs.add.__doc__ == "Return a sum."
    assert repr(jobs.add) == "<handler of job type 'tests.sample.add'>"


def test_options_of_the_decorator_are_those_of_the_policy() -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        job(name="words.one", colour=5)(nothing)  # type: ignore[call-overload]
    assert str(caught.value) == (
        f"@job on {__name__}.nothing: there is no option 'colour'."
    )
    assert registry.get("words.one") is None


def test_a_bad_name_is_refused_with_the_function() -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        job(name="two words")(nothing)
    assert str(caught.value) == (
        f"@job on {__name__}.nothing: name must have no space and no control "
        "character: 'two words'."
    )


def test_an_async_handler_cannot_be_atomic() -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        job(name="words.two", atomic=True)(nothing_later)
    assert str(caught.value) == (
        f"@job on {__name__}.nothing_later: atomic=True needs a sync handler; Django "
        "has no async transactions."
    )
    assert registry.get("words.two") is None


@pytest.mark.parametrize("given", ["mail", 5, ...])
def test_what_is_no_function_is_refused_with_a_sentence(given: Any) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        job(given)
    assert str(caught.value) == (
        f"@job decorates a function, not {given!r}. Give options by name: "
        "@job(queue=…)."
    )
    with pytest.raises(ImproperlyConfigured):
        job(queue="mail")(given)


def test_too_many_tags_are_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidArguments) as caught:
        jobs.add.using(tags=["x" * 10_000])
    assert str(caught.value) == (
        "tags is 10,004 bytes of JSON; at most 10,000 are allowed. Use fewer, or "
        "shorter ones."
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"queue": ""}, "queue must be a name, not ''."),
        ({"queue": "a b"}, "queue must have no space, comma or control character"),
        ({"priority": 101}, "priority must be a whole number from -100 to 100"),
        ({"priority": True}, "priority must be a whole number from -100 to 100"),
        ({"run_after": NAIVE}, "run_after must be aware of its time zone; datetime"),
        (
            {"run_after": "now"},
            "run_after must be a datetime or a timedelta, not 'now'.",
        ),
        ({"run_after": 60}, "run_after must be a datetime or a timedelta, not 60."),
        (
            {"run_after": timedelta(days=40_000)},
            "run_after must be at most 36,500 days away, not 40000 days",
        ),
        ({"enqueued_by": 7}, "enqueued_by must be a string of at most 150 characters."),
        (
            {"enqueued_by": "x" * 151},
            "enqueued_by must be a string of at most 150 characters.",
        ),
        ({"expires_at": NAIVE}, "expires_at must be aware of its time zone; datetime"),
        ({"expires_at": timedelta(1)}, "expires_at must be a datetime, not datetime.t"),
        ({"tags": [1]}, "tags must be a list of strings, not [1]."),
        ({"tags": "urgent"}, "tags must be a list of strings, not 'urgent'."),
        ({"id": "7"}, "'7' is no job id; it must be a UUID."),
        ({"id": 7}, "7 is no job id; it must be a UUID."),
    ],
)
def test_a_wrong_option_of_an_enqueue_is_refused_by_its_name(
    options: dict[str, Any], problem: str
) -> None:
    assert refused(lambda: jobs.add.using(**options)).startswith(problem)
    assert refused(lambda: enqueue("tests.sample.add", {"a": 1}, **options)).startswith(
        problem
    )


def test_using_leaves_the_handler_itself_alone() -> None:
    urgent = jobs.add.using(priority=50, run_after=NOON, tags=["a"])
    assert isinstance(urgent, Handler)
    assert urgent is not jobs.add
    assert urgent.name == jobs.add.name
    assert urgent(1, 2) == 3


@pytest.mark.parametrize("text", [str(ID), ID.hex, f"job_{ID}", f"{{{ID}}}", ID])
def test_an_id_is_understood_in_its_usual_forms(text: UUID | str) -> None:
    assert as_id(text) == ID


@pytest.mark.parametrize("text", ["", "job_", "7", f"jobs_{ID}", str(ID)[:-1], None])
def test_what_is_no_id_is_refused(text: Any) -> None:
    assert refused(lambda: as_id(text)) == f"{text!r} is no job id; it must be a UUID."


def test_data_that_does_not_fit_is_refused_before_the_database_is_asked() -> None:
    assert refused(lambda: jobs.add.enqueue()) == (  # type: ignore[call-arg]
        "tests.sample.jobs.add() is missing 'a'."
    )
    assert refused(lambda: jobs.add.enqueue(object())).startswith(  # type: ignore[arg-type]
        "data['a'] is an object, which JSON does not have"
    )
    assert refused(lambda: enqueue("tests.sample.add", {"c": 1})) == (
        "tests.sample.jobs.add() has no parameter 'c'. It is missing 'a'."
    )
    assert refused(lambda: enqueue("no.such.type", [1])) == (  # type: ignore[arg-type]
        "The data of a job must be an object, not list."
    )


def test_one_bad_call_of_many_is_refused_before_the_database_is_asked() -> None:
    calls = [{"a": 1}, {"a": 2, "bb": 3}]
    assert refused(lambda: jobs.add.enqueue_many(calls)) == (
        "calls[1]: tests.sample.jobs.add() has no parameter 'bb'. Did you mean 'b'?"
    )


BAD_CALLS: dict[str, object] = {
    "an unknown name": {"a": 1, "c": 2},
    "a missing name": {},
    "no dict": [1],
    "another type": {"a": "x"},
    "no JSON": {"a": 1, "b": 10**5_000},
}


@pytest.mark.parametrize("kind", BAD_CALLS)
@pytest.mark.parametrize(
    "many", [jobs.add.enqueue_many, by_name_add], ids=["handler", "name"]
)
def test_one_bad_call_of_many_is_named_by_its_index(
    many: Callable[[Any], Any], kind: str
) -> None:
    calls = [{"a": 1}, {"a": 2}, BAD_CALLS[kind], {"a": 3}]
    assert refused(lambda: many(calls)).startswith("calls[2]: ")
    assert refused(lambda: many(iter(calls))).startswith("calls[2]: ")


def test_many_jobs_cannot_have_one_id() -> None:
    assert refused(lambda: jobs.add.using(id=ID).enqueue_many([{"a": 1}])) == (
        "id is for one job, not for enqueue_many."
    )


def test_no_calls_are_no_jobs() -> None:
    assert jobs.add.enqueue_many([]) == []


@pytest.mark.parametrize("given", [5, None, jobs.add])
def test_by_name_a_name_is_wanted(given: Any) -> None:
    text = refused(lambda: enqueue(given, {"a": 1}))
    assert text.startswith(f"enqueue takes the name of a job type, not {given!r}")


SOON, LATER = timedelta(minutes=5), timedelta(hours=1)
NEVER_DUE: dict[str, dict[str, Any]] = {
    "a moment after it": {"run_after": NOON + SOON, "expires_at": NOON},
    "the same moment": {"run_after": NOON, "expires_at": NOON},
    "a wait beyond it": {"run_after": LATER, "expires_at": NOON},
}


@pytest.mark.parametrize("kind", NEVER_DUE)
def test_a_job_that_would_expire_before_it_is_due_is_refused(kind: str) -> None:
    options = NEVER_DUE[kind]
    if isinstance(options["run_after"], timedelta):
        options = {**options, "expires_at": datetime.now(UTC) + SOON}
    problem = refused(lambda: jobs.add.using(**options))
    assert problem.startswith("expires_at must be later than run_after: the job would")
    assert (
        refused(lambda: enqueue("tests.sample.add", {"a": 1}, **options))[:40]
        == (problem[:40])
    )
    first, second = ({name: value} for name, value in options.items())
    assert (
        refused(lambda: jobs.add.using(**first).using(**second))[:40] == (problem[:40])
    )
    jobs.add.using(run_after=NOON, expires_at=NOON + SOON)
