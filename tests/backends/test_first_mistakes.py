"""What somebody meets who writes to a task the words of another queue."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import override_settings

from django_jobqueue.backends import task
from django_jobqueue.backends.compat import InvalidTask, task_backends
from django_jobqueue.backends.job_task import OF_CALLS, POLICY
from django_jobqueue.text.foreign_words import HANDLER, OPTIONS
from tests.sample import tasks

BACKEND = "django_jobqueue.backends.JobQueueBackend"
# Words of others that Django's tasks have, too.
OF_DJANGO = {"acall", "aget_result", "call", "get_result", "queue_name"}
OWN = {"retry"}  # an option of @task
FOREIGN = sorted({*OPTIONS} - OF_DJANGO)
# What no sentence about a task may say: it has other words for it.
OF_JOBS_ONLY = re.compile(r"@job\(|[ (]queue=|<handler>")


def hello(name: str) -> None: ...


def said(call: Callable[[], Any], *kinds: type[Exception]) -> str:
    with pytest.raises(kinds) as caught:
        call()
    return str(caught.value)


def of_settings(word: str) -> str:
    options = {"BACKEND": BACKEND, "OPTIONS": {word: 3}}
    with override_settings(TASKS={"default": options}):
        (message,) = task_backends["default"].check()
    assert message.id == "jobqueue.E022"
    return str(message.hint)


@pytest.mark.parametrize("word", FOREIGN)
def test_an_option_of_another_queue_is_answered_with_ours(word: str) -> None:
    using: Callable[..., Any] = tasks.add.using
    answers = {
        "OPTIONS": of_settings(word),
        "@task": said(lambda: task(**{word: 3})(hello), TypeError),  # type: ignore[call-overload]
        "using": said(lambda: using(**{word: 3}), TypeError),
        "enqueue": said(lambda: tasks.add.enqueue(1, **{word: 3}), TypeError),
    }
    first = OPTIONS[word].split("(")[0].split("<")[0].replace("@job", "@task")
    for where, answer in answers.items():
        assert first.replace(" queue=", " queue_name=") in answer, where
        assert not OF_JOBS_ONLY.search(answer), where


def test_retries_are_answered_with_attempts() -> None:
    assert of_settings("max_retries") == (
        "Write max_attempts=4 for 3 retries: it counts the first attempt, too."
    )


@pytest.mark.parametrize("word", sorted({*HANDLER} - OF_DJANGO - OWN))
def test_a_method_of_another_queue_is_answered_with_ours(word: str) -> None:
    answer = said(lambda: getattr(tasks.add, word), AttributeError)
    assert answer.startswith(f"'JobTask' object has no attribute {word!r}. ")
    assert not OF_JOBS_ONLY.search(answer)
    assert not hasattr(tasks.add, "colour")


def test_the_method_that_all_write_first() -> None:
    answer = said(lambda: tasks.add.delay("x"), AttributeError)  # type: ignore[attr-defined]
    assert answer == "'JobTask' object has no attribute 'delay'. Write add.enqueue(…)."


@pytest.mark.parametrize("word", sorted(OF_CALLS))
def test_each_option_of_using_is_known_among_the_arguments(word: str) -> None:
    answer = said(lambda: tasks.add.enqueue(1, **{word: 3}), TypeError)
    assert answer.endswith(f"It is an option of the job: using({word}=…).enqueue(…).")


def test_options_of_handlers_are_known_among_the_arguments() -> None:
    answer = said(lambda: tasks.add.enqueue(1, queue="mail"), TypeError)
    assert answer.endswith(" an option of the job: using(queue_name=…).enqueue(…).")
    for word in {*POLICY} - OF_CALLS:
        answer = said(lambda word=word: tasks.add.enqueue(1, **{word: 3}), TypeError)  # type: ignore[misc]
        assert answer.endswith(f"It holds for all jobs of a task: @task({word}=…).")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"run_after": 3},
            "run_after must be a datetime or a timedelta, not 3. "
            "Write timedelta(seconds=3).",
        ),
        ({"run_after": "now"}, "run_after must be a datetime or a timedelta, not 'now"),
        ({"priority": "high"}, "priority must be a whole number from -100 to 100"),
        ({"queue_name": ["mail"]}, "queue_name must be a name, not ['mail']"),
    ],
)
def test_a_value_of_another_type_is_refused_with_a_sentence(
    options: dict[str, Any], problem: str
) -> None:
    assert said(lambda: tasks.add.using(**options), InvalidTask).startswith(problem)


def test_one_bad_call_of_many_is_named_by_its_index() -> None:
    good = {"a": 1}
    for bad in ({"a": 1, "c": 2}, {}, [1], 7, {"a": object()}):
        calls: Any = [good, good, bad, good]
        answer = said(lambda calls=calls: tasks.add.enqueue_many(calls), TypeError)  # type: ignore[misc]
        assert answer.startswith("calls[2]: ")
    one: Any = good
    assert "takes a list of dicts" in said(
        lambda: tasks.add.enqueue_many(one), ValueError
    )


@pytest.mark.django_db
def test_many_calls_of_several_tasks_are_counted_through() -> None:
    backend: Any = task_backends["default"]
    calls = [(tasks.add, (1,), {}), (tasks.fail, (), {}), (tasks.add, (), {})]
    answer = said(lambda: backend.enqueue_many(calls), TypeError)
    assert answer.startswith("calls[2]: ")


def test_a_task_that_would_expire_before_it_is_due_is_refused() -> None:
    noon = datetime(2099, 1, 1, 12, tzinfo=UTC)
    late = tasks.add.using(run_after=noon, expires_at=noon - timedelta(hours=1))
    answer = said(lambda: late.enqueue(1), ValueError)
    assert answer.startswith("expires_at must be later than run_after")
