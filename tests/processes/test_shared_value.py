"""A value that one process writes and others read."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue.processes.shared_value import SharedValue
from tests.support.waiting import eventually

PLAIN = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.tuples(st.text(), st.text()), inner)
    ),
)


@pytest.mark.dear
@given(PLAIN)
def test_whatever_is_written_is_read(value: object) -> None:
    shared = SharedValue()
    assert shared.read() is None
    for word in ("before", value):
        assert shared.write(word)
        assert shared.read() == word
    shared.clear()
    assert shared.read() is None
    assert shared.write(value)
    assert shared.read() == value


def test_a_value_that_has_no_room_leaves_the_one_before() -> None:
    shared = SharedValue(100)
    assert shared.write("short")
    assert not shared.write("long" * 100)
    assert shared.read() == "short"
    assert shared.write("again")
    assert shared.read() == "again"


def write_without_rest(shared: SharedValue) -> None:
    """Values of changing lengths, which have one number alone."""
    number = 0
    while True:
        number += 1
        shared.write([number] * (1 + number % 2_000))


def test_a_reader_beside_a_writer_that_never_rests_sees_no_mixture() -> None:
    shared = SharedValue()
    assert shared.write([1])
    if (pid := os.fork()) == 0:
        write_without_rest(shared)
    try:
        values = [shared.read() for _ in range(3_000)]
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert [value for value in values if len(set(value)) != 1] == []
    numbers = [value[0] for value in values]
    assert numbers == sorted(numbers)


@pytest.mark.dear
def test_a_writer_that_is_killed_at_any_moment_leaves_a_whole_value() -> None:
    shared, last = SharedValue(), 0
    assert shared.write([0])
    for _ in range(20):
        if (pid := os.fork()) == 0:
            write_without_rest(shared)
        eventually(lambda before=last: shared.read()[0] != before)
        time.sleep(random.uniform(0, 0.002))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        value = shared.read()
        assert len(set(value)) == 1
        last = value[0]
