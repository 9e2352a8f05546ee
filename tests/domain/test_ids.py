"""Ids: UUIDv7, in order within a process, unique after a fork."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
import warnings
from uuid import RFC_4122

import pytest

from django_jobqueue.domain import ids
from django_jobqueue.domain.ids import new_id, new_ids

MANY = 20_000  # more than the 4,096 that the counter has for one millisecond


def test_an_id_is_a_uuid_of_version_7_and_ids_ascend() -> None:
    for id in new_ids(100):
        assert (id.version, id.variant) == (7, RFC_4122)
    before = time.time_ns() // 1_000_000
    stamp = new_id().int >> 80
    assert before <= stamp <= time.time_ns() // 1_000_000 + 1_000
    assert new_ids(0) == []
    tails = []  # which no seed of the project's determines
    for _ in range(2):
        random.seed(7)
        tails.append(new_id().int & (1 << 62) - 1)
    assert tails[0] != tails[1]
    made = new_ids(MANY)
    assert made == sorted(made)
    assert len(set(made)) == MANY
    assert new_id() > made[-1]
    texts = [str(id) for id in made]
    assert texts == sorted(texts)
    mixed = [id for count in (1, 300, 0) for id in (new_id(), *new_ids(count))]
    assert mixed == sorted(mixed)


def test_a_clock_that_is_set_back_does_not_change_the_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = new_id()
    yesterday = time.time_ns() - 86_400 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: yesterday)
    made = new_ids(5_000)
    monkeypatch.undo()
    assert before < made[0]
    assert made == sorted(made)
    assert all((id.version, id.variant) == (7, RFC_4122) for id in made)
    assert new_id() > made[-1]


def test_ids_of_several_threads_are_unique_and_ascend_in_each() -> None:
    made: list[list[object]] = [[] for _ in range(4)]

    def make(place: int) -> None:
        made[place].extend(new_ids(2_000))

    threads = [threading.Thread(target=make, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id for part in made for id in part}) == 8_000
    assert all(part == sorted(part) for part in made)  # type: ignore[type-var]


@pytest.mark.processes
def test_a_child_of_a_fork_makes_other_ids_also_if_its_parent_was_making_some() -> None:
    reader, writer = os.pipe()
    new_ids(10)
    with warnings.catch_warnings(), ids._lock:  # private: another thread may hold it
        warnings.simplefilter("ignore")  # of threads; the child calls nothing of them
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            os.write(writer, b"".join(id.bytes for id in new_ids(2_000)))
            os._exit(0)  # private: no clean-up in the child
    os.close(writer)
    with open(reader, "rb") as pipe:
        sent = pipe.read()
    os.waitpid(pid, 0)
    made = {int.from_bytes(sent[at : at + 16]) for at in range(0, len(sent), 16)}
    made |= {id.int for id in new_ids(2_000)}
    assert len(made) == 4_000
    assert len({id & (1 << 62) - 1 for id in made}) == 4_000
