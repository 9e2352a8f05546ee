"""Whether a host checks jobs of which another host was told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from django_jobqueue.host.maintenance import host_listener
from django_jobqueue.host.maintenance.host_listener import (
    DISTRUSTED_FOR,
    MOST,
    WAIT,
    SecondChecks,
)
from django_jobqueue.store.notify import JobElsewhere


class Scene:
    """Jobs that wait, the second checks of a host, and a clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waiting: set[str] = set()
        self.asked: list[str] = []  # ids, in the last check
        self.checks = SecondChecks()

    def hear(self, id: str, host: str = "there") -> bool:
        return self.checks.must_act(JobElsewhere(id, host, "mail"))

    def pass_time(self, seconds: float) -> bool:
        self.now += seconds
        self.asked = []
        return self.checks.check(self._still_wait)

    def _still_wait(self, ids: Sequence[str]) -> set[str]:
        self.asked = sorted(ids)
        return self.waiting & set(ids)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    scene = Scene()
    monkeypatch.setattr(host_listener.time, "monotonic", lambda: scene.now)
    return scene


def test_a_job_is_started_here_if_it_still_waits_after_its_time(scene: Scene) -> None:
    assert not scene.hear("1")
    assert not scene.pass_time(WAIT / 2)
    assert scene.asked == []
    assert not scene.pass_time(WAIT)  # another host has started it
    assert scene.asked == ["1"]
    assert scene.checks.seconds_until_due == float("inf")
    scene.hear("2")
    scene.waiting = {"2"}
    assert scene.pass_time(WAIT)


def test_each_job_has_its_time_and_few_are_remembered(scene: Scene) -> None:
    for id in "123":
        scene.hear(id)
        scene.pass_time(0.6 * WAIT)
    assert scene.asked == ["1"] or scene.asked == ["2"]
    assert scene.checks.seconds_until_due > 0
    scene.pass_time(0.6 * WAIT)
    assert scene.asked == ["3"] or scene.asked == ["2", "3"]
    scene.pass_time(WAIT)
    for n in range(2 * MOST):
        scene.hear(str(n))
    scene.pass_time(WAIT)
    assert len(scene.asked) == MOST


def test_a_host_that_did_not_react_is_not_waited_for_for_a_while(scene: Scene) -> None:
    scene.hear("1")
    scene.waiting = {"1"}
    assert scene.pass_time(WAIT)
    assert not scene.hear("2")
    scene.waiting = set()  # started here
    assert not scene.pass_time(WAIT)
    assert scene.hear("3")
    assert not scene.hear("4", "elsewhere")
    scene.now += DISTRUSTED_FOR
    assert not scene.hear("5")


def test_a_job_that_nobody_can_start_is_no_reason_to_distrust(scene: Scene) -> None:
    """Its type is paused, or has reached a limit."""
    scene.hear("1")
    scene.waiting = {"1"}
    assert scene.pass_time(WAIT)
    assert not scene.pass_time(WAIT)
    assert scene.asked == ["1"]
    assert scene.checks.seconds_until_due == float("inf")
    assert not scene.hear("2")
