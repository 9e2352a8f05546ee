"""Which connections of a worker may keep something in their session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from django_jobqueue.store.connection import OwnConnection
from tests.conftest import HandDriven
from tests.sample import jobs


@pytest.mark.parametrize("listen", [True, False])
def test_all_connections_of_a_worker_know_whether_they_are_behind_a_pooler(
    make_worker: Callable[..., HandDriven],
    monkeypatch: pytest.MonkeyPatch,
    listen: bool,
) -> None:
    made: list[OwnConnection] = []
    init = OwnConnection.__init__

    def remember(self: OwnConnection, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(OwnConnection, "__init__", remember)
    worker = make_worker(listen=listen)
    jobs.tell.enqueue(lines=1)
    worker.work()

    pooled = {one.purpose: one.pooled for one in made if one.purpose != "listener"}
    expected = ("register", "dispatcher", "completer", "reporter")
    assert {name: pooled.get(name) for name in expected} == dict.fromkeys(
        expected, not listen
    )
    assert set(pooled.values()) == {not listen}
