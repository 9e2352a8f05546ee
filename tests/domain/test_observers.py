"""Observers: their order, their errors, and what jobs remember of them."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from django_jobqueue import observers
from django_jobqueue.observers import (
    TRACE_BYTES,
    Enqueue,
    Observer,
    around_enqueue,
    observe,
    stop_observing,
    trace_of,
)
from tests.support.tables import differing


class Noting(Observer):
    """Notes its calls in a list that several share."""

    def __init__(self, name: str, calls: list[str], **trace: str) -> None:
        self.name, self.calls, self.trace = name, calls, trace

    @contextmanager
    def around_enqueue(self, enqueue: Enqueue) -> Iterator[Mapping[str, str]]:
        self.calls.append(f"{self.name} enters")
        try:
            yield self.trace
        except ValueError as error:
            self.calls.append(f"{self.name} sees {error}")
            raise
        self.calls.append(f"{self.name} leaves")

    def flush(self, seconds: float) -> None:
        self.calls.append(f"{self.name} sends")


class Broken(Observer):
    """Raises when it is entered, or when it is left."""

    def __init__(self, error: type[BaseException], *, early: bool) -> None:
        self.error, self.early = error, early

    @contextmanager
    def around_enqueue(self, enqueue: Enqueue) -> Iterator[None]:
        if self.early:
            raise self.error("before")
        yield
        raise self.error("after")

    def flush(self, seconds: float) -> None:
        raise self.error("at the end")


@pytest.fixture(autouse=True)
def _observers_of_a_test_are_gone_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observers, "registered", ())


def test_the_first_observer_is_the_outermost_and_all_see_errors() -> None:
    calls: list[str] = []
    outer = Noting("outer", calls)
    observe(outer)
    observe(Noting("inner", calls))
    observe(outer)  # once more, which changes nothing
    with around_enqueue(Enqueue()):
        calls.append("enqueues")
    with pytest.raises(ValueError, match="no"), around_enqueue(Enqueue()):
        raise ValueError("no")
    entering = ["outer enters", "inner enters"]
    assert calls == [
        *(*entering, "enqueues", "inner leaves", "outer leaves"),
        *(*entering, "inner sees no", "outer sees no"),
    ]
    calls.clear()
    stop_observing(outer)
    observers.flush(1)
    assert calls == ["inner sends"]


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("error", [LookupError, SystemExit, CancelledError])
def test_an_observer_that_raises_is_logged_once_and_left_out(
    error: type[BaseException], early: bool, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []
    broken = Broken(error, early=early)
    observe(broken)
    observe(Noting("other", calls, traceparent="00-1"))
    for _ in range(3):
        with around_enqueue(Enqueue()) as trace:
            assert trace == {"traceparent": "00-1"}
    observers.flush(1)
    assert calls == [*["other enters", "other leaves"] * 3, "other sends"]
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("django_jobqueue.observers", "ERROR")
    assert record.getMessage().startswith("The observer Broken failed")
    stop_observing(broken)


def test_observers_share_the_baggage_and_a_trace_has_at_most_2_kb() -> None:
    one = Noting("one", [], traceparent="00-1", baggage="a=1")
    observe(one)
    observe(Noting("other", [], baggage="b=2"))
    with around_enqueue(Enqueue()) as trace:
        assert trace == {"traceparent": "00-1", "baggage": "a=1,b=2"}
    one.trace = {"traceparent": "00-1", "tracestate": "s" * TRACE_BYTES}
    with around_enqueue(Enqueue()) as trace:
        assert trace == {"traceparent": "00-1", "baggage": "b=2"}


def test_the_trace_is_read_whatever_the_metadata_has() -> None:
    traces: list[tuple[str | None, dict[str, str]]] = [
        (None, {}),
        ("{}", {}),
        ('{"trace": {"traceparent": "00-1"}}', {"traceparent": "00-1"}),
        ('{"trace": {"traceparent": 7, "x": "y"}}', {"x": "y"}),
        ('{"trace": "of a project"}', {}),
        ('["trace"]', {}),
        ('{"trace": ', {}),
    ]
    assert differing(traces, trace_of) == []
