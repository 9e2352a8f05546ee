"""Long work that Ctrl-C ends between two batches."""

from __future__ import annotations

import io
import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest
from django.core.management.base import CommandError, OutputWrapper
from django.core.management.color import no_style
from django.db import DatabaseError, OperationalError

from django_jobqueue.management.jobqueue.batches import run_batches, unbroken
from django_jobqueue.management.jobqueue.console import Console


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def fail(error: Exception) -> None:
    raise error


class Work:
    """Five batches of ten; during the second one something happens."""

    def __init__(self, happen: Callable[[], object] = lambda: None) -> None:
        self.done = 0
        self.errors = io.StringIO()
        self._happen = happen

    def _steps(self) -> Iterator[int]:
        for number in range(5):
            if number == 1:
                self._happen()
            self.done += 10
            yield 10

    def run(self) -> None:
        streams = (OutputWrapper(io.StringIO()), OutputWrapper(self.errors))
        console = Console(*streams, no_style(), 1)
        bar = ("Working", 50)
        run_batches(self._steps(), console, bar, lambda: f"{self.done} done.")


def test_the_batch_in_which_ctrl_c_came_is_finished_and_counted() -> None:
    work = Work()
    work.run()
    assert work.done == 50
    with pytest.raises(CommandError) as refused:
        Work(interrupt).run()
    assert str(refused.value) == "Interrupted. 20 done."
    assert refused.value.returncode == 130


def test_a_second_ctrl_c_does_not_wait() -> None:
    with pytest.raises(CommandError, match=r"Interrupted\. 10 done\."):
        Work(lambda: (interrupt(), interrupt())).run()  # type: ignore[func-returns-value]


def test_an_error_of_the_database_says_how_far_it_came() -> None:
    work = Work(lambda: fail(OperationalError("server closed the connection")))
    with pytest.raises(DatabaseError, match="server closed"):
        work.run()
    assert work.errors.getvalue() == "The database failed. 10 done.\n"


def test_afterwards_ctrl_c_is_what_it_was_before_also_after_an_error() -> None:
    before = signal.getsignal(signal.SIGINT)
    with unbroken():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    both = Work(lambda: (interrupt(), fail(LookupError())))  # type: ignore[func-returns-value]
    with pytest.raises(LookupError):  # it wins over the interrupt
        both.run()
    assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_where_no_signal_arrives_it_changes_nothing() -> None:
    seen = []

    def enter() -> None:
        with unbroken():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
