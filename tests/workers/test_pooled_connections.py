"""Which connections of a worker may keep something in their session."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

import django_jobqueue
from django_jobqueue.store.connection import OwnConnection
from tests.sample import jobs
from tests.support.rows import archived
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)

WORKERS = {"register", "dispatcher", "completer", "reporter"}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[OwnConnection]:
    """Every connection of the machinery that is made during the test."""
    made: list[OwnConnection] = []
    init = OwnConnection.__init__

    def remember(self: OwnConnection, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(OwnConnection, "__init__", remember)
    return made


def pooled(made: list[OwnConnection], purposes: set[str]) -> dict[str, set[bool]]:
    """Whether those for these purposes believe to be behind a pooler."""
    return {
        purpose: {one.pooled for one in made if one.purpose == purpose}
        for purpose in purposes
    }


@pytest.mark.parametrize("listen", [True, False])
def test_all_connections_know_whether_they_are_behind_a_pooler(
    made: list[OwnConnection], listen: bool
) -> None:
    jobs.tell.enqueue(lines=1)
    with (
        override_settings(JOBQUEUE={"LISTEN": listen}),
        django_jobqueue.worker(threads=1),
    ):
        eventually(archived)
    expected = WORKERS | {"renewer"}
    assert pooled(made, expected) == dict.fromkeys(expected, {not listen})
    # The first ones of the maintenance process find out whether there is a pooler.
    maintenance = [one.pooled for one in made if one.purpose == "maintenance"]
    assert maintenance == [True, True, not listen]
