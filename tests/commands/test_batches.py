"""Long work that Ctrl-C ends between two batches."""

from __future__ import annotations

import io
import os
import signal
import threading
from collections.abc import Iterator

import pytest
from django.core.management.base import CommandError, OutputWrapper
from django.core.management.color import no_style
from django.db import DatabaseError, OperationalError

from django_jobqueue.management.jobqueue.batches import run_batches, unbroken
from django_jobqueue.management.jobqueue.console import Console


class Work:
    """Batches of ten; during the second one something happens."""

    def __init__(self) -> None:
        self.done = 0
        self.errors = io.StringIO()

    def happen(self) -> None:
        """What happens."""

    def steps(self) -> Iterator[int]:
        for number in range(5):
            if number == 1:
                self.happen()
            self.done += 10
            yield 10

    def run(self) -> None:
        streams = (OutputWrapper(io.StringIO()), OutputWrapper(self.errors))
        console = Console(*streams, no_style(), 1)
        bar = ("Working", 50)
        run_batches(self.steps(), console, bar, lambda: f"{self.done} done.")


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_all_batches_are_done() -> None:
    work = Work()
    work.run()
    assert work.done == 50


def test_the_batch_in_which_ctrl_c_came_is_finished_and_counted() -> None:
    class Interrupted(Work):
        def happen(self) -> None:
            interrupt()

    work = Interrupted()
    with pytest.raises(CommandError) as refused:
        work.run()
    assert str(refused.value) == "Interrupted. 20 done."
    assert refused.value.returncode == 130


def test_a_second_ctrl_c_does_not_wait() -> None:
    class Impatient(Work):
        def happen(self) -> None:
            interrupt()
            interrupt()

    work = Impatient()
    with pytest.raises(CommandError, match=r"Interrupted\. 10 done\."):
        work.run()


def test_an_error_of_the_database_says_how_far_it_came() -> None:
    class Failing(Work):
        def happen(self) -> None:
            raise OperationalError("server closed the connection")

    work = Failing()
    with pytest.raises(DatabaseError, match="server closed"):
        work.run()
    assert work.errors.getvalue() == "The database failed. 10 done.\n"


def test_afterwards_ctrl_c_is_what_it_was_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with unbroken():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_in_a_block_wins_over_an_interrupt_and_restores_the_handler() -> None:
    class Failing(Work):
        def happen(self) -> None:
            interrupt()
            raise LookupError

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(LookupError):
        Failing().run()
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
