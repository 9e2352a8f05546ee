"""Ids: UUIDv7, in order within a process, unique after a fork."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from uuid import RFC_4122

import pytest

from django_jobqueue.domain import ids
from django_jobqueue.domain.ids import new_id, new_ids

MANY = 20_000  # more than the 4,096 that the counter has for one millisecond


def test_an_id_is_a_uuid_of_version_7() -> None:
    for id in new_ids(100):
        assert id.version == 7
        assert id.variant == RFC_4122


def test_an_id_tells_the_millisecond_in_which_it_was_made() -> None:
    before = time.time_ns() // 1_000_000
    stamp = new_id().int >> 80
    assert before <= stamp <= time.time_ns() // 1_000_000 + 1_000


def test_ids_ascend_also_within_a_millisecond() -> None:
    made = new_ids(MANY)
    assert made == sorted(made)
    assert len(set(made)) == MANY
    assert new_id() > made[-1]


def test_as_texts_they_ascend_too() -> None:
    made = [str(id) for id in new_ids(MANY)]
    assert made == sorted(made)


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


def test_no_ids_are_no_ids() -> None:
    assert new_ids(0) == []


FORKED = """
import os
from django_jobqueue.domain.ids import new_ids
new_ids(10)
pid = os.fork()
made = new_ids(2_000)
if pid == 0:
    os.write(1, ("\\n".join(map(str, made)) + "\\n").encode())
    os._exit(0)
os.waitpid(pid, 0)
os.write(1, ("\\n".join(map(str, made)) + "\\n").encode())
"""

HELD = """
import os, signal
from django_jobqueue.domain import ids
with ids._lock:
    pid = os.fork()
    if pid == 0:
        signal.alarm(1)
        ids.new_id()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
print(os.waitstatus_to_exitcode(status))
"""


def python(code: str) -> str:
    """What a process of its own prints: one with a single thread may fork."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_parent_and_child_of_a_fork_make_different_ids() -> None:
    made = python(FORKED).split()
    assert len(made) == 4_000
    assert len(set(made)) == 4_000
    tails = {int(id.replace("-", ""), 16) & (1 << 62) - 1 for id in made}
    assert len(tails) == 4_000


def test_a_fork_while_an_id_is_made_does_not_block_the_child() -> None:
    assert python(HELD).strip() == "0"


def test_the_source_of_randomness_is_our_own() -> None:
    import random

    random.seed(7)
    one = new_id().int & (1 << 62) - 1
    random.seed(7)
    assert one != new_id().int & (1 << 62) - 1
    assert ids._random is not random
