"""Signals: receivers that raise are logged and harm nothing."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.dispatch import Signal

from django_jobqueue import signals
from django_jobqueue.signals import asend, send


@pytest.fixture
def signal() -> Iterator[Signal]:
    made = Signal()
    yield made
    assert not made.receivers


def test_receivers_get_the_arguments_and_one_that_raises_harms_no_other(
    signal: Signal, caplog: pytest.LogCaptureFixture
) -> None:
    got: list[Any] = []

    def fail(word: str = "", **kwargs: object) -> None:
        raise ValueError("a bad receiver")

    def receive(sender: str, job: object = None, **kwargs: object) -> None:
        got.append((sender, job))

    nameless = partial(fail, "x")
    signal.connect(fail)
    signal.connect(receive, sender="shop.send")
    send(signal, "shop.send", job="a job")
    send(signal, "shop.charge", job="of another type")
    assert {
        str(record.exc_info[1]) for record in caplog.records if record.exc_info
    } == {"a bad receiver"}
    signal.disconnect(fail)
    signal.connect(nameless)  # which Django cannot log
    send(signal, "shop.send")
    asyncio.run(asend(signal, "shop.send"))
    signal.disconnect(nameless)
    signal.disconnect(receive, sender="shop.send")
    send(signal, "shop.send", job="another")
    assert got == [("shop.send", "a job"), *[("shop.send", None)] * 2]
    assert len(caplog.records) == 4
    got: list[object] = []

    async def receive(sender: object, **kwargs: object) -> None:
        await asyncio.sleep(0)
        got.append((sender, asyncio.get_running_loop()))

    async def main() -> asyncio.AbstractEventLoop:
        await asend(signal, "shop.send")
        return asyncio.get_running_loop()

    signal.connect(receive)
    loop = asyncio.run(main())
    signal.disconnect(receive)
    assert got == [("shop.send", loop)]


def test_every_signal_is_in_the_table_of_the_docstring() -> None:
    """And in that order, under the heading that says where it is sent."""
    named = [name for name, value in vars(signals).items() if type(value) is Signal]
    _title, _, table = str(signals.__doc__).partition("==\nsignal ")
    described = re.findall(r"^(\w+)  +\S", table, re.M)
    assert described == named, (
        "django_jobqueue/signals.py: its docstring and its signals differ. Write a "
        "line with the arguments of each new signal into the table of the docstring "
        "(and a row into docs/reference/signals.md), in the order of the definitions."
    )


def test_a_receiver_that_exits_ends_nothing_else(
    signal: Signal, caplog: pytest.LogCaptureFixture
) -> None:
    def exit(**kwargs: object) -> None:
        sys.exit(1)

    signal.connect(exit)
    send(signal, "shop.send")
    signal.disconnect(exit)
    assert len(caplog.records) == 1
