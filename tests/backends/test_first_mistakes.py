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
from tests.support.tables import differing, refusal
from tests.support.undone import check_each

BACKEND = "django_jobqueue.backends.JobQueueBackend"
# Words of others that Django's tasks have, too.
OF_DJANGO = {"acall", "aget_result", "call", "get_result", "queue_name"}
OWN = {"retry"}  # an option of @task
FOREIGN = sorted({*OPTIONS} - OF_DJANGO)
# What no sentence about a task may say: it has other words for it.
OF_JOBS_ONLY = re.compile(r"@job\(|[ (]queue=|<handler>")


def hello(name: str) -> None: ...


def of_settings(word: str) -> str:
    options = {"BACKEND": BACKEND, "OPTIONS": {word: 3}}
    with override_settings(TASKS={"default": options}):
        (message,) = task_backends["default"].check()
    assert message.id == "jobqueue.E022"
    return str(message.hint)


def test_an_option_of_another_queue_is_answered_with_ours() -> None:
    def check(word: str) -> None:
        using: Callable[..., Any] = tasks.add.using
        answers = {
            "OPTIONS": of_settings(word),
            "@task": refusal(TypeError, lambda: task(**{word: 3})(hello)),  # type: ignore[call-overload]
            "using": refusal(TypeError, lambda: using(**{word: 3})),
            "enqueue": refusal(TypeError, lambda: tasks.add.enqueue(1, **{word: 3})),
        }
        first = OPTIONS[word].split("(")[0].split("<")[0].replace("@job", "@task")
        for where, answer in answers.items():
            assert first.replace(" queue=", " queue_name=") in answer, where
            assert not OF_JOBS_ONLY.search(answer), where

    check_each(check, ((word,) for word in FOREIGN), least=10)
    assert of_settings("max_retries") == (
        "Write max_attempts=4 for 3 retries: it counts the first attempt, too."
    )


def test_a_method_of_another_queue_is_answered_with_ours() -> None:
    for word in sorted({*HANDLER} - OF_DJANGO - OWN):
        answer = refusal(AttributeError, lambda: getattr(tasks.add, word))  # noqa: B023
        assert answer.startswith(f"'JobTask' object has no attribute {word!r}. ")
        assert not OF_JOBS_ONLY.search(answer)
    assert not hasattr(tasks.add, "colour")
    answer = refusal(AttributeError, lambda: tasks.add.delay("x"))  # type: ignore[attr-defined]
    assert answer == "'JobTask' object has no attribute 'delay'. Write add.enqueue(…)."


def test_each_option_is_known_among_the_arguments() -> None:
    def ask(word: str) -> str:
        return refusal(TypeError, lambda: tasks.add.enqueue(1, **{word: 3}))

    of_job, of_task = (
        "It is an option of the job: ",
        "It holds for all jobs of a task: ",
    )
    rows = [(word, f"{of_job}using({word}=…).enqueue(…).") for word in OF_CALLS]
    rows.append(("queue", " an option of the job: using(queue_name=…).enqueue(…)."))
    rows += [(word, f"{of_task}@task({word}=…).") for word in {*POLICY} - OF_CALLS]
    assert differing(rows, ask, str.endswith) == []


VALUES: list[tuple[dict[str, Any], str]] = [
    (
        {"run_after": 3},
        "run_after must be a datetime or a timedelta, not 3. "
        "Write timedelta(seconds=3).",
    ),
    ({"run_after": "now"}, "run_after must be a datetime or a timedelta, not 'now"),
    ({"priority": "high"}, "priority must be a whole number from -100 to 100"),
    ({"queue_name": ["mail"]}, "queue_name must be a name, not ['mail']"),
]


def test_a_value_of_another_type_is_refused_with_a_sentence() -> None:
    def ask(options: dict[str, Any]) -> str:
        return refusal(InvalidTask, lambda: tasks.add.using(**options))

    assert differing(VALUES, ask, str.startswith) == []
    noon = datetime(2099, 1, 1, 12, tzinfo=UTC)
    late = tasks.add.using(run_after=noon, expires_at=noon - timedelta(hours=1))
    answer = refusal(ValueError, lambda: late.enqueue(1))
    assert answer.startswith("expires_at must be later than run_after")


@pytest.mark.django_db
def test_one_bad_call_of_many_is_named_by_its_index() -> None:
    good: Any = {"a": 1}
    for bad in ({"a": 1, "c": 2}, {}, [1], 7, {"a": object()}):
        calls: Any = [good, good, bad, good]
        answer = refusal(TypeError, tasks.add.enqueue_many, calls)
        assert answer.startswith("calls[2]: ")
    answer = refusal(ValueError, tasks.add.enqueue_many, good)
    assert "takes a list of dicts" in answer
    backend: Any = task_backends["default"]
    several = [(tasks.add, (1,), {}), (tasks.fail, (), {}), (tasks.add, (), {})]
    assert refusal(TypeError, backend.enqueue_many, several).startswith("calls[2]: ")
