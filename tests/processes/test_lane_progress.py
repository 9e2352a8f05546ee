"""What the processes of a host tell each other of lanes."""

from __future__ import annotations

import os
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue.processes.lane_progress import (
    REREAD,
    LaneProgress,
    SharedLaneProgress,
)
from django_jobqueue.store.queue.lanes import START, Mark
from tests.workers.test_lanes import BILL, MAIL, at

marks: st.SearchStrategy[Mark] = st.tuples(
    st.datetimes(timezones=st.just(UTC)), st.uuids()
)


@given(st.builds(LaneProgress, marks, marks, marks, st.integers(0, 2 * REREAD)))
def test_what_is_written_is_read(progress: LaneProgress) -> None:
    shared = SharedLaneProgress()
    assert shared.write(MAIL, progress) == shared.checksum(MAIL) != 0
    assert shared.read(MAIL) == progress


def test_nothing_is_read_of_a_lane_of_which_nothing_was_written() -> None:
    shared = SharedLaneProgress()
    assert shared.checksum(MAIL) == 0
    assert shared.read(MAIL) is None


def test_lanes_of_one_place_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_jobqueue.processes.lane_progress.PLACES", 1)
    shared = SharedLaneProgress()
    shared.write(MAIL, LaneProgress(at(1)))
    assert shared.read(BILL) is None
    shared.write(BILL, LaneProgress(at(2)))
    assert shared.read(MAIL) is None
    assert shared.read(BILL) == LaneProgress(at(2))


def test_what_two_wrote_at_once_is_nothing_or_of_one_of_them() -> None:
    """Whatever words of each there are."""
    one, other = LaneProgress(at(1), at(0), at(1), 7), LaneProgress(at(3), at(1), at(2))
    shared = SharedLaneProgress()
    first = shared._first(MAIL)  # private: its place
    words_of_all = shared._words  # private: to write half of it
    shared.write(MAIL, other)
    of_other = words_of_all[first : first + 16].tolist()
    for words in range(1, 16):
        shared.write(MAIL, one)
        for word in range(words):
            words_of_all[first + word] = of_other[word]
        whole = words >= 11
        assert shared.read(MAIL) == (other if whole else None)


def test_a_process_that_was_forked_reads_what_another_one_wrote() -> None:
    shared = SharedLaneProgress()
    if not (pid := os.fork()):
        shared.write(MAIL, LaneProgress(at(5)))
        shared.full_scan_begins()
        os._exit(0)
    os.waitpid(pid, 0)
    assert shared.read(MAIL) == LaneProgress(at(5))
    assert shared.full_scan_at > 0


def test_progress_never_goes_back() -> None:
    progress = LaneProgress().moved(at(5)).moved(at(2), 3)
    assert progress == LaneProgress(at(5), at(5), at(5), 3)
    assert LaneProgress().mark == START
