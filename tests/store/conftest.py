"""Fixtures of the store's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial

import pytest
from django.db import connections

from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import insert
from django_jobqueue.store.session import FINISHING, PINNED
from tests.store.meanwhile import Background, Hearing, submit
from tests.store.rows import forget_job_types, register


@pytest.fixture(autouse=True)
def _looks_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an enqueue looked up holds for the whole test, and for no other one."""
    forget_job_types()
    monkeypatch.setattr(insert, "KNOWN_FOR", 3_600.0)


@pytest.fixture
def holder(own: OwnConnection) -> int:
    """The id of a worker that is alive."""
    return register(own)


@pytest.fixture
def finishing(transactional_db: None) -> Iterator[OwnConnection]:
    """A connection as the one that outcomes are written on."""
    with closing(OwnConnection("tests", plans=FINISHING)) as made:
        yield made


@pytest.fixture
def claimers(own: OwnConnection) -> Iterator[list[tuple[OwnConnection, int]]]:
    """Six claimers: a connection and a worker each."""
    with ExitStack() as stack:
        yield [
            (
                stack.enter_context(closing(OwnConnection("claimer", plans=PINNED))),
                register(own, f"host:{number}"),
            )
            for number in range(6)
        ]


@pytest.fixture
def ear(other: OwnConnection) -> Hearing:
    """Hears notifications, on the connection ``other``; also those of the one host that
    most tests register workers of."""
    return Hearing(other, "host:0")


@pytest.fixture
def background(transactional_db: None) -> Iterator[Background]:
    """Call functions in threads: ``background(function).result(30)``."""
    with ThreadPoolExecutor(4) as pool:
        yield partial(submit, pool)


@pytest.fixture
def configure(transactional_db: None) -> Iterator[Callable[..., None]]:
    """Change settings of the database, for new connections: ``configure(HOST=…)``."""
    with pytest.MonkeyPatch.context() as patch:

        def change(**values: object) -> None:
            for name, value in values.items():
                patch.setitem(connections.settings["default"], name, value)

        yield change
