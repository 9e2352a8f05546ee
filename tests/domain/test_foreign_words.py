"""Words of other queues: each message that refuses one says what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from itertools import product
from typing import Any
from uuid import UUID

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
from django_jobqueue.text import foreign_words
from django_jobqueue.text.foreign_words import HANDLER, JOB, OPTIONS, RAISED, advice
from tests.domain.made import NOON, context, queued_job
from tests.sample import jobs
from tests.support.tables import differing, refusal

ID = UUID("019aa2f0-0000-7000-8000-000000000001")
ONLY_OF_TYPES = sorted({*OF_TYPE} - {*OF_JOB})
OF_ONE_JOB = sorted({*OF_JOB} - {*OF_TYPE})
ADD = "tests.sample.add"
HANDLER_ADD: Any = jobs.add  # as whoever does not know its parameters sees it
BY_NAME: Any = enqueue


def nothing() -> None:
    """Do nothing."""


def named_send(order_id: int) -> None: ...


def by_job(word: str, function: Any = nothing) -> str:
    return refusal(ImproperlyConfigured, lambda: job(**{word: 1})(function))


def by_using(word: str) -> str:
    return refusal(TypeError, lambda: HANDLER_ADD.using(**{word: 1}))


def by_enqueue(word: str) -> str:
    return refusal(InvalidArguments, lambda: HANDLER_ADD.enqueue(1, **{word: 1}))


def by_name(word: str, data: dict[str, Any] | None = None) -> str:
    return refusal(TypeError, lambda: BY_NAME(ADD, data or {"a": 1}, **{word: 1}))


def by_attribute(owner: object, word: str) -> str:
    return refusal(AttributeError, getattr, owner, word)


def test_an_option_of_another_queue_is_answered_with_ours() -> None:
    for word in OPTIONS:
        hint = advice(word, OPTIONS, "nothing")
        assert by_job(word).endswith(f"there is no option {word!r}.{hint}")
        hint = advice(word, OPTIONS, "add")
        assert by_using(word) == f"There is no option {word!r} of a job.{hint}"
        assert by_enqueue(word).endswith(f"has no parameter {word!r}.{hint}")


def test_by_name_the_answer_is_what_can_be_written_there() -> None:
    """The name of a job type has no ``using``, nor is there a handler."""
    for word in OPTIONS:
        refused = by_name(word)
        assert refused.startswith(f"There is no option {word!r} of a job. ")
        assert "using(" not in refused
        assert "handler.enqueue" not in refused
    assert by_name("countdown") == (
        "There is no option 'countdown' of a job. Write run_after=timedelta(seconds=…)."
    )
    assert by_name("concurrency").endswith(
        "It holds for all jobs of a type: @job(concurrency=…)."
    )
    assert by_name("kwargs").endswith(f"The data is one dict: enqueue('{ADD}', {{…}}).")
    data = {"a": 1, "queue": "mail"}
    assert refusal(InvalidArguments, BY_NAME, ADD, data).endswith(
        "It is an option of the job: queue=…."
    )


def test_a_hint_has_the_name_of_the_handler_that_it_is_about() -> None:
    sentences = [by_attribute(jobs.add, word) for word in HANDLER]
    sentences += [by_using(word) for word in OPTIONS]
    sentences += [by_enqueue(word) for word in OPTIONS]
    sentences += [by_job(word, named_send) for word in (*OPTIONS, *OF_ONE_JOB)]
    for sentence in sentences:
        assert "<" not in sentence
        for name in re.findall(r"(\w+)\.(?:a?enqueue|using)\b", sentence):
            assert name in ("add", "named_send"), sentence
    assert by_attribute(jobs.add, "delay").endswith(" Write add.enqueue(…).")


def test_an_option_of_ours_is_answered_with_where_it_is_said() -> None:
    for word in OF_JOB:
        assert by_enqueue(word).endswith(
            f"It is an option of the job: using({word}=…).enqueue(…)."
        )
    for word in ONLY_OF_TYPES:
        where = f"It holds for all jobs of a type: @job({word}=…)."
        assert by_enqueue(word).endswith(where)
        assert by_using(word) == f"There is no option {word!r} of a job. {where}"
    for word in OF_ONE_JOB:
        assert by_job(word).endswith(
            f"there is no option {word!r}. It belongs to one job: "
            f"nothing.using({word}=…).enqueue(…)."
        )


def test_an_attribute_of_another_queue_is_answered_with_ours() -> None:
    all_words = (HANDLER, JOB, foreign_words.IN_HANDLER)
    for owner, words in zip(
        (jobs.add, queued_job(), context()), all_words, strict=True
    ):
        for word in words:
            assert by_attribute(owner, word) == (
                f"{type(owner).__name__!r} object has no attribute {word!r}."
                f"{advice(word, words, 'add')}"
            )
        assert not hasattr(owner, "colour")


def test_an_argument_of_what_others_raise_is_answered_with_ours() -> None:
    kinds: tuple[Any, ...] = (Retry, Snooze, Fail, Cancel)
    for kind, word in product(kinds, RAISED):
        assert refusal(TypeError, lambda k=kind, w=word: k("why", **{w: 60})) == (
            f"{kind.__name__} has no argument {word!r}.{advice(word, RAISED)}"
        )


def test_no_word_of_ours_is_in_the_tables_and_each_advice_is_a_sentence() -> None:
    """What is right must not be refused, nor explained."""
    ours = {*job_options.OPTIONS, "name"}
    assert not ours & {*OPTIONS}
    assert not {*HANDLER} & {*dir(Handler)}
    assert not {*JOB} & {*dir(Job)}
    assert not {*foreign_words.IN_HANDLER} & {*dir(Context)}
    assert not {"reason", "after", "for_"} & {*RAISED}
    for words in (OPTIONS, HANDLER, JOB, foreign_words.IN_HANDLER, RAISED):
        for text in words.values():
            assert text[0].isupper()
            assert not text.endswith((".", " "))


MANY = (
    "enqueue_many takes a list of dicts, one for each job, not dict. "
    "For one job write enqueue(…)."
)
NO_OBJECT = (
    "calls[0]: The data for tests.sample.jobs.add() must be an object with a key for "
    "each parameter, not"
)
NO_TIME = "must be a datetime, not"
NOW_PLUS = "Write timezone.now() + timedelta"
WAIT = "must be a timedelta or a number of seconds, not"
EACH = f"{NO_OBJECT} tuple. Write {{'a': …, 'b': …}}."
REASON = "Retry takes the reason first."
MINUTE = timedelta(seconds=60)
ANY: Any = operations
RETRY: Any = Retry
SNOOZE: Any = Snooze


# Refused because the data do not fit, or as Python would refuse it.
def given(option: str, value: Any) -> Callable[[], Any]:
    return lambda: HANDLER_ADD.using(**{option: value})


DAY = "a datetime, not datetime.timedelta(days=1)."
OF_DATA: list[tuple[Callable[[], Any], str]] = [
    (
        given("run_after", 30),
        "run_after must be a datetime or a timedelta, not 30. Write timedelta(seconds=",
    ),
    (given("expires_at", 1.5), f"expires_at {NO_TIME} 1.5. {NOW_PLUS}(seconds=1.5)."),
    (given("expires_at", timedelta(1)), f"expires_at must be {DAY} For a duration"),
    (
        lambda: ANY.reschedule(ID, run_after=30),
        f"run_after {NO_TIME} 30. {NOW_PLUS}(seconds=30).",
    ),
    (
        lambda: ANY.pause("a.b", resume_at=timedelta(1)),
        f"resume_at must be {DAY} {NOW_PLUS}(…).",
    ),
    (lambda: HANDLER_ADD.enqueue_many([(1, 2)]), EACH),
    (lambda: HANDLER_ADD.enqueue_many([7]), f"{NO_OBJECT} int."),
    (lambda: HANDLER_ADD.enqueue_many({"a": 1}), MANY),
    (lambda: enqueue_many(ADD, {"a": 1}), MANY),
]
OF_PYTHON: list[tuple[Callable[[], Any], str]] = [
    (lambda: RETRY(60), f"{REASON} Write Retry(after=60)."),
    (lambda: RETRY(MINUTE), f"{REASON} Write Retry(after={MINUTE!r})."),
    (lambda: RETRY(after="60"), f"after {WAIT} '60'."),
    (lambda: RETRY(after=NOON), f"after {WAIT} {NOON!r}. Write moment - timezone.now"),
    (lambda: SNOOZE("busy"), "Snooze takes the wait first. Write Snooze(60, 'busy')."),
    (lambda: SNOOZE(None), f"for_ {WAIT} None."),
    (
        lambda: BY_NAME(ADD, a=1),
        "'a' is a parameter of tests.sample.jobs.add(), not an option of a job. The "
        "data is one dict: enqueue('tests.sample.add', {'a': …}).",
    ),
]


def test_a_value_as_others_have_it_is_answered_with_ours() -> None:
    rows = [(InvalidArguments, *row) for row in OF_DATA]
    rows += [(TypeError, *row) for row in OF_PYTHON]
    assert differing(rows, refusal, str.startswith) == []
