"""What an attempt comes to, without a database."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from django_jobqueue import Cancel, Context, Snooze
from django_jobqueue.domain.arguments import Parameters
from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.job_options import policy_of
from django_jobqueue.domain.registry import Declaration
from django_jobqueue.domain.retry_decision import MOST_GIVEN_BACK, StopReason, Verb
from django_jobqueue.domain.states import AttemptEnd
from django_jobqueue.exceptions import JobTimeout
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.attempt_outcome import CANCELLED, STOPPED, NotWanted
from django_jobqueue.execution.attempt_steps import arun, run
from django_jobqueue.signals import attempt_failed, attempt_started, attempt_succeeded
from django_jobqueue.store.rows import ClaimedJob
from django_jobqueue.text.redaction import MASK, secrets_in
from tests.sample import jobs
from tests.support.waiting import eventually


def attempt_of(
    function: Any,
    data: str = "{}",
    *,
    attempts: int = 1,
    max_attempts: int | None = 3,
    expires_in: float | None = None,
    timeout: float | None = None,
    claimed: float | None = None,
    **options: Any,
) -> Attempt:
    """An attempt of this function, as if it had been claimed just now."""
    policy = policy_of("tests", options)
    begun = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    return Attempt(
        job=ClaimedJob(
            *(new_id(), "tests.job", "default", 0, data, attempts, None),
            *(0, 1, begun, begun, 0.5),  # crashes, fence, due, created, waited
            expires_in=expires_in,
        ),
        declaration=Declaration(
            name="tests.job",
            function=function,
            policy=policy,
            parameters=Parameters.of(function, takes_context=policy.takes_context),
        ),
        max_attempts=max_attempts,
        timeout=timeout,
        worker="here:1",
        claimed=time.monotonic() if claimed is None else claimed,
    )


def test_the_result_is_kept_as_json() -> None:
    def handler(context: Context, a: int) -> dict[str, object]:
        return {"of": [context.attempt, context.max_attempts, context.job_type, a]}

    finished = run(attempt_of(handler, '{"a": 7}', attempts=2, takes_context=True))
    assert finished.outcome.verb is Verb.SUCCEED
    assert finished.outcome.result == '{"of":[2,3,"tests.job",7]}'


def raising(error: BaseException) -> Callable[[], None]:
    def handler() -> None:
        raise error

    return handler


def test_an_exception_is_kept_and_retried() -> None:
    outcome = run(attempt_of(raising(ValueError("no such order")))).outcome
    assert (outcome.verb, outcome.end) == (Verb.RETRY, AttemptEnd.FAILED)
    assert outcome.failure is not None
    assert outcome.failure.error_class == "ValueError"
    assert outcome.failure.message == "no such order"
    assert "in handler" in outcome.failure.traceback
    assert "execution/attempt" not in outcome.failure.traceback


def test_whatever_a_handler_raises_is_only_a_failed_attempt() -> None:
    errors = (SystemExit(3), KeyboardInterrupt(), GeneratorExit(), BaseException("x"))
    for error in errors:

        async def ahandler(error: BaseException = error) -> None:
            raise error

        assert run(attempt_of(raising(error))).outcome.verb is Verb.RETRY
        assert asyncio.run(arun(attempt_of(ahandler))).outcome.verb is Verb.RETRY


def test_data_that_does_not_fit_the_handler_is_not_retried() -> None:
    problems = {"{}": "is missing 'a'", "[1]": "must be an object"}
    for data, problem in problems.items():
        outcome = run(attempt_of(lambda a: None, data)).outcome
        assert outcome.verb is Verb.FAIL
        assert outcome.reason == "the data does not fit the handler"
        assert outcome.failure is not None
        assert problem in outcome.failure.message


async def _never() -> None: ...


@pytest.mark.parametrize(
    ("handler", "kind"),
    [(object, "an object"), (lambda: {"a": {1}}, "a set"), (_never, "a coroutine")],
)
def test_a_result_that_is_no_json_fails(handler: Callable[[], Any], kind: str) -> None:
    outcome = run(attempt_of(lambda: handler())).outcome
    assert (outcome.verb, outcome.reason) == (Verb.FAIL, "the result is not JSON")
    assert outcome.failure is not None
    name = "django_jobqueue.exceptions.InvalidResult"
    assert outcome.failure.error_class == name
    assert f" is {kind}, which" in outcome.failure.message
    assert outcome.failure.frames == []
    assert outcome.failure.traceback == "", "it would say no more"


def test_a_job_that_expired_after_its_claim_or_is_cancelled_is_not_started() -> None:
    called: list[int] = []
    late = attempt_of(lambda: called.append(1), expires_in=10.0, claimed=-100.0)
    assert run(late).outcome.verb is Verb.EXPIRE
    cancelled = attempt_of(lambda: called.append(1))
    assert cancelled.interrupt(StopReason.CANCEL)
    assert run(cancelled).outcome.verb is Verb.CANCEL
    assert called == []


@pytest.mark.parametrize("options", [{}, {"delivery": "at_most_once"}])
@pytest.mark.parametrize("asked", [StopReason.CANCEL, StopReason.STOP])
def test_who_is_told_to_stop_at_last_does_not_begin(
    asked: StopReason, options: dict[str, Any]
) -> None:
    """Between the look whether it is wanted, and its start."""
    called: list[int] = []
    attempt = attempt_of(lambda: called.append(1), timeout=9.0, **options)
    assert attempt.outcome_unstarted is None
    assert attempt.interrupt(asked)
    with pytest.raises(NotWanted) as caught:
        attempt.begin()
    outcome = {StopReason.CANCEL: CANCELLED, StopReason.STOP: STOPPED}[asked]
    assert caught.value.outcome is outcome
    assert (run(attempt).outcome, called) == (outcome, [])
    finished = asyncio.run(arun(attempt_of(_never, **options)))
    assert finished.outcome.verb is Verb.SUCCEED
    again = attempt_of(_never, **options)
    again.interrupt(asked)
    assert asyncio.run(arun(again)).outcome is outcome


@pytest.mark.parametrize("options", [{}, {"delivery": "at_most_once"}])
def test_data_for_newer_code_is_left_to_it(options: dict[str, Any]) -> None:
    called: list[int] = []
    waits = []
    for claim in range(1, MOST_GIVEN_BACK + 2):
        attempt = attempt_of(lambda a: called.append(a), '{"a": 1, "b": 2}', **options)
        attempt.job = attempt.job._replace(fence=claim)
        outcome = run(attempt).outcome
        waits.append(outcome.wait.total_seconds())
        if claim == 1:
            assert (outcome.verb, outcome.end) == (Verb.SNOOZE, AttemptEnd.SNOOZED)
            assert outcome.reason.startswith("left to newer code: ")
            assert outcome.reason.endswith("has no parameter 'b'.")
    assert outcome.verb is Verb.FAIL
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 0]
    assert called == []


def test_receivers_hear_of_every_attempt_and_their_errors_harm_nothing() -> None:
    heard: list[str] = []

    def hear(signal: Any, sender: str, **kwargs: Any) -> None:
        heard.append(f"{sender} {sorted(kwargs)}")
        raise RuntimeError("a bad receiver")

    for signal in (attempt_started, attempt_succeeded, attempt_failed):
        signal.connect(hear)
    try:
        assert run(attempt_of(lambda: None)).outcome.verb is Verb.SUCCEED
        assert run(attempt_of(lambda: 1 / 0)).outcome.verb is Verb.RETRY
    finally:
        for signal in (attempt_started, attempt_succeeded, attempt_failed):
            signal.disconnect(hear)
    assert heard == [
        "tests.job ['context', 'job_type']",
        "tests.job ['context', 'job_type', 'seconds']",
        "tests.job ['context', 'job_type']",
        "tests.job ['context', 'error', 'job_type', 'outcome', 'seconds']",
    ]


def in_thread(attempt: Attempt) -> tuple[threading.Thread, list[Any]]:
    """Run it in another thread; return that and where the result will be."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(run(attempt)))
    thread.start()
    eventually(lambda: attempt.started)
    return thread, results


ASKED = [
    (StopReason.TIME_OUT, Verb.RETRY, AttemptEnd.TIMED_OUT),
    (StopReason.CANCEL, Verb.CANCEL, AttemptEnd.CANCELLED),
    (StopReason.STOP, Verb.RELEASE, AttemptEnd.RELEASED),
]


@pytest.mark.parametrize(("asked", "verb", "end"), ASKED)
def test_a_handler_is_interrupted_once(
    asked: StopReason, verb: Verb, end: AttemptEnd
) -> None:
    """In a thread, and in a task."""
    attempt = attempt_of(jobs.slow.function, '{"seconds": 60}', timeout=1.0)
    thread, results = in_thread(attempt)
    assert attempt.interrupt(asked)
    assert not attempt.interrupt(StopReason.TIME_OUT)
    thread.join(10)
    (finished,) = results
    assert (finished.outcome.verb, finished.outcome.end) == (verb, end)
    assert not attempt.interrupt(StopReason.STOP)  # it is over

    task = attempt_of(jobs.aslow.function, '{"seconds": 60}', timeout=1.0)

    async def scene() -> Any:
        task.task = asyncio.create_task(arun(task))
        await asyncio.sleep(0)
        task.interrupt(asked)
        return await task.task

    finished = asyncio.run(scene())
    assert finished.outcome.verb is verb
    if asked is StopReason.TIME_OUT:
        text = "it ran longer than its timeout of 1 s"
        assert finished.outcome.failure.message == text


# Python drops what is raised while an object is finalized, and pytest complains.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interruption_never_reaches_what_the_thread_does_next() -> None:
    """Interrupt attempts at the very moment that they end, again and again."""

    def brief() -> None:
        sum(range(200))

    outcomes: set[Verb] = set()
    strays: list[BaseException] = []
    current: list[Attempt] = []
    done = threading.Event()

    def work() -> None:
        try:
            for _ in range(1_000):
                attempt = attempt_of(brief)
                current[:] = [attempt]
                outcomes.add(run(attempt).outcome.verb)
                sum(range(50))  # what comes next must not be hit
        except BaseException as error:
            strays.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        for attempt in list(current):
            attempt.interrupt(StopReason.TIME_OUT)
    thread.join()
    assert strays == []
    assert outcomes <= {Verb.SUCCEED, Verb.RETRY}


PROFILED = """
import signal, sys, threading
signal.alarm(120)  # kills a process that spins inside of CPython
import django
django.setup()
from django_jobqueue.domain.retry_decision import StopReason
from tests.execution.test_attempt import attempt_of, run
attempt = attempt_of(lambda: attempt.interrupt(StopReason.TIME_OUT), timeout=1.0)
print(run(attempt).outcome.verb)
sys.setprofile(lambda frame, event, argument: None)
attempt_of(lambda: None)
"""


@pytest.mark.processes
def test_an_interruption_leaves_nothing_for_the_interpreter_to_look_for() -> None:
    """A profiler of 3.11 would hang, and 3.12 would be slow from then on."""
    done = subprocess.run(
        [sys.executable, "-c", PROFILED],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "DJANGO_SETTINGS_MODULE": "tests.static_settings",
        },
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "Verb.RETRY\n"), done.stderr


class InterruptedLate(Attempt):
    """Is interrupted when its handler has ended and nothing shields it yet."""

    is_late = False

    def leave(self) -> None:
        if not self.is_late:
            self.is_late = True
            raise JobTimeout
        super().leave()


def late(function: Any) -> Attempt:
    """The same attempt, interrupted as above."""
    attempt = attempt_of(function, timeout=1.0)
    attempt.__class__ = InterruptedLate
    return attempt


def test_an_interruption_after_the_end_of_the_handler_changes_nothing() -> None:
    for value, result in ((7, "7"), (None, "null")):
        attempt = late(lambda value=value: value)
        outcome = run(attempt).outcome
        assert (outcome.verb, outcome.result) == (Verb.SUCCEED, result)
        assert attempt.over
    failure = run(late(raising(ValueError("no such order")))).outcome.failure
    assert failure is not None
    assert failure.error_class == "ValueError"


def test_a_hopeless_attempt_is_recorded_as_what_it_was_told() -> None:
    for asked, verb in (
        (StopReason.TIME_OUT, Verb.RETRY),
        (StopReason.CANCEL, Verb.CANCEL),
    ):
        attempt = attempt_of(lambda: None, timeout=2.0)
        attempt.started, attempt.asked = 1.0, asked
        outcome = attempt.finish_unresponsive().outcome
        assert outcome.verb is verb
        assert attempt.over


def test_sensitive_values_are_masked_in_failures_and_reasons() -> None:
    outcome = run(
        attempt_of(jobs.leak.function, '{"token": "s3cr3t!"}', sensitive=("token",))
    ).outcome
    assert outcome.failure is not None
    assert "s3cr3t" not in outcome.failure.message + outcome.failure.traceback
    assert outcome.failure.message == "cannot use ••••"

    def handler(pin: str) -> None:
        raise Cancel(f"wrong pin {pin}")

    outcome = run(attempt_of(handler, '{"pin": "93517"}', sensitive=["pin"])).outcome
    assert outcome.verb is Verb.CANCEL
    assert outcome.reason == f"wrong pin {MASK}"


def test_the_secrets_of_an_attempt_are_looked_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many there are: to find them takes longer than to look for them."""
    looked: list[int] = []

    def count(data: Any, sensitive: Any) -> Any:
        looked.append(1)
        return secrets_in(data, sensitive)

    monkeypatch.setattr("django_jobqueue.execution.attempt.secrets_in", count)
    made = attempt_of(
        jobs.leak.function,
        json.dumps({"token": [f"token-{n}" for n in range(20_000)]}),
        sensitive=("token",),
    )
    report = made.here().report
    for n in range(20):
        report.log(f"with token-{n}7", "info")
        report.take()
    failure = run(made).outcome.failure
    assert failure is not None
    assert "token-" not in failure.message + failure.traceback
    assert looked == [1]


class Busy(Snooze):
    """Forgets to say for how long."""

    def __init__(self) -> None:
        pass


def test_an_error_about_which_nothing_can_be_decided_is_a_failure() -> None:
    outcome = run(attempt_of(raising(Busy()))).outcome
    assert outcome.verb is Verb.RETRY
    assert outcome.failure is not None
    assert outcome.failure.error_class == "AttributeError"
    assert outcome.failure.message == "'Busy' object has no attribute 'for_'"


def hang(attempt: int, exception: BaseException, job: Context) -> float:
    raise AssertionError("a backoff that may hang is called")


@pytest.mark.parametrize("end", ["finish_unresponsive", "finish_ended"])
def test_a_backoff_is_not_called_where_something_hangs(
    end: str, caplog: pytest.LogCaptureFixture
) -> None:
    rules: list[tuple[dict[str, Any], str]] = [
        ({"backoff": hang}, "the default wait"),
        ({"backoff": 5, "retry": {Exception: hang}}, ""),
    ]
    for options, reason in rules:
        attempt = attempt_of(lambda: None, **options)
        attempt.begin()
        attempt.asked, attempt.error = StopReason.TIME_OUT, JobTimeout()
        try:
            outcome = getattr(attempt, end)().outcome
        finally:
            attempt.leave()
        assert (outcome.verb, outcome.reason) == (Verb.RETRY, reason)
    assert not caplog.records
