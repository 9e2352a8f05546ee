"""Words of other queues: each message that refuses one says what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_jobqueue import (
    Cancel,
    Context,
    Fail,
    Handler,
    InvalidArguments,
    Job,
    Retry,
    Snooze,
    enqueue,
    enqueue_many,
    job,
    operations,
)
from django_jobqueue.domain import job_options
from django_jobqueue.domain.job_options import OF_JOB, OF_TYPE
from django_jobqueue.text.foreign_words import (
    HANDLER,
    IN_HANDLER,
    JOB,
    OPTIONS,
    RAISED,
    advice,
)
from tests.docs.pages import pages
from tests.sample import jobs

ID = UUID("019aa2f0-0000-7000-8000-000000000001")
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ONLY_OF_TYPES = sorted({*OF_TYPE} - {*OF_JOB})
OF_ONE_JOB = sorted({*OF_JOB} - {*OF_TYPE})


def nothing() -> None:
    """Do nothing."""


def said(call: Callable[[], Any], kind: type[Exception]) -> str:
    """What the refusal of this call says."""
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def a_context() -> Context:
    return Context(
        id=ID,
        job_type="tests.sample.add",
        queue="default",
        attempt=1,
        max_attempts=5,
        crashes=0,
        data={},
        run_after=NOON,
        created_at=NOON,
        worker="",
    )


def a_job() -> Job:
    return Job(
        id=ID,
        job_type="tests.sample.add",
        queue="default",
        priority=0,
        status="queued",
        data={},
        run_after=NOON,
        expires_at=None,
        created_at=NOON,
    )


@pytest.mark.parametrize("word", OPTIONS)
def test_an_option_of_another_queue_is_answered_with_ours(word: str) -> None:
    hint = advice(word, OPTIONS, "nothing")
    refused = said(lambda: job(**{word: 1})(nothing), ImproperlyConfigured)
    assert refused.endswith(f"there is no option {word!r}.{hint}")
    hint = advice(word, OPTIONS, "add")
    refused = said(lambda: jobs.add.using(**{word: 1}), TypeError)  # type: ignore[misc]
    assert refused == f"There is no option {word!r} of a job.{hint}"
    refused = said(lambda: jobs.add.enqueue(1, **{word: 1}), InvalidArguments)
    assert refused.endswith(f"has no parameter {word!r}.{hint}")


@pytest.mark.parametrize("word", OPTIONS)
def test_by_name_the_answer_is_what_can_be_written_there(word: str) -> None:
    """The name of a job type has no ``using``, nor is there a handler."""
    refused = said(
        lambda: enqueue("tests.sample.add", {"a": 1}, **{word: 1}),  # type: ignore[misc]
        TypeError,
    )
    assert refused.startswith(f"There is no option {word!r} of a job. ")
    assert "using(" not in refused
    assert "handler.enqueue" not in refused


def test_by_name_a_wait_is_an_option_of_the_call() -> None:
    by_name: Callable[..., Any] = enqueue
    refused = said(lambda: by_name("tests.sample.add", {}, countdown=3), TypeError)
    assert refused == (
        "There is no option 'countdown' of a job. Write run_after=timedelta(seconds=…)."
    )
    refused = said(lambda: by_name("tests.sample.add", {}, concurrency=3), TypeError)
    assert refused.endswith("It holds for all jobs of a type: @job(concurrency=…).")
    refused = said(lambda: by_name("tests.sample.add", {}, kwargs={}), TypeError)
    assert refused.endswith("The data is one dict: enqueue('tests.sample.add', {…}).")
    refused = said(
        lambda: by_name("tests.sample.add", {"a": 1, "queue": "mail"}), InvalidArguments
    )
    assert refused.endswith("It is an option of the job: queue=….")


def named_send(order_id: int) -> None: ...


def test_a_hint_has_the_name_of_the_handler_that_it_is_about() -> None:
    sentences = [
        said(lambda word=word: getattr(jobs.add, word), AttributeError)  # type: ignore[misc]
        for word in HANDLER
    ]
    sentences += [
        said(lambda word=word: jobs.add.using(**{word: 1}), TypeError)  # type: ignore[misc]
        for word in OPTIONS
    ]
    sentences += [
        said(lambda word=word: jobs.add.enqueue(1, **{word: 1}), InvalidArguments)  # type: ignore[misc]
        for word in OPTIONS
    ]
    sentences += [
        said(lambda word=word: job(**{word: 1})(named_send), ImproperlyConfigured)  # type: ignore[misc]
        for word in (*OPTIONS, *OF_ONE_JOB)
    ]
    for sentence in sentences:
        assert "<" not in sentence
        for name in re.findall(r"(\w+)\.(?:a?enqueue|using)\b", sentence):
            assert name in ("add", "named_send"), sentence
    said_of = said(lambda: jobs.add.delay(1), AttributeError)  # type: ignore[attr-defined]
    assert said_of.endswith(" Write add.enqueue(…).")


@pytest.mark.parametrize("word", sorted(OF_JOB))
def test_each_option_of_using_is_known_among_the_arguments(word: str) -> None:
    refused = said(lambda: jobs.add.enqueue(1, **{word: 1}), InvalidArguments)
    assert refused.endswith(f"It is an option of the job: using({word}=…).enqueue(…).")


@pytest.mark.parametrize("word", ONLY_OF_TYPES)
def test_each_option_of_job_is_known_among_the_arguments(word: str) -> None:
    refused = said(lambda: jobs.add.enqueue(1, **{word: 1}), InvalidArguments)
    assert refused.endswith(f"It holds for all jobs of a type: @job({word}=…).")


@pytest.mark.parametrize("word", OF_ONE_JOB)
def test_an_option_of_one_job_is_answered_with_where_it_is_said(word: str) -> None:
    refused = said(lambda: job(**{word: 1})(nothing), ImproperlyConfigured)
    assert refused.endswith(
        f"there is no option {word!r}. It belongs to one job: "
        f"nothing.using({word}=…).enqueue(…)."
    )


@pytest.mark.parametrize("word", ONLY_OF_TYPES)
def test_an_option_of_all_jobs_is_answered_with_where_it_is_said(word: str) -> None:
    refused = said(lambda: jobs.add.using(**{word: 1}), TypeError)  # type: ignore[misc]
    assert refused == (
        f"There is no option {word!r} of a job. It holds for all jobs of a type: "
        f"@job({word}=…)."
    )


@pytest.mark.parametrize(
    ("owner", "words"),
    [(jobs.add, HANDLER), (a_job(), JOB), (a_context(), IN_HANDLER)],
    ids=["handler", "job", "context"],
)
def test_an_attribute_of_another_queue_is_answered_with_ours(
    owner: object, words: dict[str, str]
) -> None:
    kind = type(owner).__name__
    for word in words:
        refused = said(lambda word=word: getattr(owner, word), AttributeError)  # type: ignore[misc]
        assert refused == (
            f"{kind!r} object has no attribute {word!r}.{advice(word, words, 'add')}"
        )
    assert not hasattr(owner, "colour")


@pytest.mark.parametrize("word", RAISED)
@pytest.mark.parametrize("kind", [Retry, Snooze, Fail, Cancel])
def test_an_argument_of_what_others_raise_is_answered_with_ours(
    kind: type[Exception], word: str
) -> None:
    refused = said(lambda: kind("why", **{word: 60}), TypeError)
    assert refused == f"{kind.__name__} has no argument {word!r}.{advice(word, RAISED)}"


def test_no_word_of_ours_is_in_the_tables() -> None:
    """What is right must not be refused, nor explained."""
    ours = {*job_options.OPTIONS, "name"}
    assert not ours & {*OPTIONS}
    assert not {*HANDLER} & {*dir(Handler)}
    assert not {*JOB} & {*dir(Job)}
    assert not {*IN_HANDLER} & {*dir(Context)}
    assert not {"reason", "after", "for_"} & {*RAISED}


def test_every_advice_is_a_sentence_without_its_end() -> None:
    for words in (OPTIONS, HANDLER, JOB, IN_HANDLER, RAISED):
        for text in words.values():
            assert text[0].isupper()
            assert not text.endswith((".", " "))


VALUES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: jobs.add.using(run_after=30),  # type: ignore[typeddict-item]
        InvalidArguments,
        "run_after must be a datetime or a timedelta, not 30. "
        "Write timedelta(seconds=30).",
    ),
    (
        lambda: jobs.add.using(expires_at=1.5),  # type: ignore[typeddict-item]
        InvalidArguments,
        "expires_at must be a datetime, not 1.5. "
        "Write timezone.now() + timedelta(seconds=1.5).",
    ),
    (
        lambda: jobs.add.using(expires_at=timedelta(1)),  # type: ignore[typeddict-item]
        InvalidArguments,
        "expires_at must be a datetime, not datetime.timedelta(days=1). "
        "For a duration write expires_in=….",
    ),
    (
        lambda: operations.reschedule(ID, run_after=30),  # type: ignore[arg-type]
        InvalidArguments,
        "run_after must be a datetime, not 30. "
        "Write timezone.now() + timedelta(seconds=30).",
    ),
    (
        lambda: operations.pause("a.b", resume_at=timedelta(1)),  # type: ignore[arg-type]
        InvalidArguments,
        "resume_at must be a datetime, not datetime.timedelta(days=1). "
        "Write timezone.now() + timedelta(…).",
    ),
    (
        lambda: Retry(60),  # type: ignore[arg-type]
        TypeError,
        "Retry takes the reason first. Write Retry(after=60).",
    ),
    (
        lambda: Retry(timedelta(seconds=60)),  # type: ignore[arg-type]
        TypeError,
        "Retry takes the reason first. "
        "Write Retry(after=datetime.timedelta(seconds=60)).",
    ),
    (
        lambda: Retry(after="60"),  # type: ignore[arg-type]
        TypeError,
        "after must be a timedelta or a number of seconds, not '60'.",
    ),
    (
        lambda: Retry(after=NOON),  # type: ignore[arg-type]
        TypeError,
        f"after must be a timedelta or a number of seconds, not {NOON!r}. "
        "Write moment - timezone.now().",
    ),
    (
        lambda: Snooze("busy"),  # type: ignore[arg-type]
        TypeError,
        "Snooze takes the wait first. Write Snooze(60, 'busy').",
    ),
    (
        lambda: Snooze(None),  # type: ignore[arg-type]
        TypeError,
        "for_ must be a timedelta or a number of seconds, not None.",
    ),
    (
        lambda: jobs.add.enqueue_many([(1, 2)]),  # type: ignore[list-item]
        InvalidArguments,
        "calls[0]: The data for tests.sample.jobs.add() must be an object with a key "
        "for each "
        "parameter, not tuple. Write {'a': …, 'b': …}.",
    ),
    (
        lambda: jobs.add.enqueue_many([7]),  # type: ignore[list-item]
        InvalidArguments,
        "calls[0]: The data for tests.sample.jobs.add() must be an object with a key "
        "for each "
        "parameter, not int.",
    ),
    (
        lambda: jobs.add.enqueue_many({"a": 1}),
        InvalidArguments,
        "enqueue_many takes a list of dicts, one for each job, not dict. "
        "For one job write enqueue(…).",
    ),
    (
        lambda: enqueue_many("tests.sample.add", {"a": 1}),
        InvalidArguments,
        "enqueue_many takes a list of dicts, one for each job, not dict. "
        "For one job write enqueue(…).",
    ),
    (
        lambda: enqueue_many("tests.sample.add", [(1, 2)]),  # type: ignore[list-item]
        InvalidArguments,
        "calls[0]: The data for tests.sample.jobs.add() must be an object with a key "
        "for each "
        "parameter, not tuple. Write {'a': …, 'b': …}.",
    ),
    (
        lambda: enqueue("tests.sample.add", a=1),  # type: ignore[call-arg]
        TypeError,
        "'a' is a parameter of tests.sample.jobs.add(), not an option of a job. The "
        "data is one dict: enqueue('tests.sample.add', {'a': …}).",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), VALUES)
def test_a_value_as_others_have_it_is_answered_with_ours(
    call: Callable[[], Any], kind: type[Exception], message: str
) -> None:
    assert said(call, kind) == message


# Words in the tables of the guides that are no option and no method of a task.
NEITHER = {
    # of an application object, a broker, a scheduler, or a command line
    *("actor", "job", "periodic", "Retry", "get_current_message", "hour", "on_commit"),
    *("cancel_job_by_id", "retry_job_by_id", "get_job_status", "list_jobs", "abort"),
    *("configure_task", "send_task", "Q_CLUSTER_NAME", "is_async", "immediate", "max"),
    *("limit", "blocking", "block", "terminate", "state"),
    # the same here, or the reader's own
    *("timeout", "priority", "queue", "name", "unique", "concurrency", "enqueue"),
    *("order_id", "text", "run"),
}


def in_the_guides() -> Iterator[str]:
    """Each option and method in the columns that show what others write."""
    for page, text in pages().items():
        if "/coming-from/" not in page:
            continue
        for row in re.findall(r"^\| (?!---).* \|$", text, re.M):
            theirs = row.strip("| ").rpartition(" | ")[0]
            for code in re.findall(r"`([^`]+)`", theirs):
                yield from re.findall(r"(?<![\w.])(\w+)=", code)
                yield from re.findall(r"\.(\w+)\(", code)


@pytest.mark.parametrize("word", sorted({*in_the_guides()} - NEITHER))
def test_every_word_that_the_guides_translate_has_a_hint(word: str) -> None:
    assert any(word in words for words in (OPTIONS, HANDLER, JOB, IN_HANDLER, RAISED))
