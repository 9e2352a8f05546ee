"""Signals: receivers that raise are logged and harm nothing."""

from __future__ import annotations

import asyncio
import re
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


def test_receivers_get_the_sender_and_the_arguments(signal: Signal) -> None:
    got: list[Any] = []

    def receive(sender: str, job: object, **kwargs: object) -> None:
        got.append((sender, job))

    signal.connect(receive)
    send(signal, "shop.send", job="a job")
    signal.disconnect(receive)
    send(signal, "shop.send", job="another")
    assert got == [("shop.send", "a job")]


def test_a_receiver_that_raises_is_logged_and_the_next_one_is_called(
    signal: Signal, caplog: pytest.LogCaptureFixture
) -> None:
    got: list[str] = []

    def fail(**kwargs: object) -> None:
        raise ValueError("a bad receiver")

    def receive(sender: str, **kwargs: object) -> None:
        got.append(sender)

    for receiver in (fail, receive):
        signal.connect(receiver)
    send(signal, "shop.send")
    for receiver in (fail, receive):
        signal.disconnect(receiver)
    assert got == ["shop.send"]
    (record,) = caplog.records
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "a bad receiver"


def test_a_receiver_for_one_job_type_hears_of_no_other(signal: Signal) -> None:
    got: list[str] = []

    def receive(sender: str, **kwargs: object) -> None:
        got.append(sender)

    signal.connect(receive, sender="shop.send")
    send(signal, "shop.send")
    send(signal, "shop.charge")
    signal.disconnect(receive, sender="shop.send")
    assert got == ["shop.send"]


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


def test_a_receiver_without_a_name_that_raises_harms_nothing(
    signal: Signal, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(word: str, **kwargs: object) -> None:
        raise ValueError("a bad receiver")

    receiver = partial(fail, "x")
    signal.connect(receiver)
    send(signal, "shop.send")
    asyncio.run(asend(signal, "shop.send"))
    signal.disconnect(receiver)
    assert caplog.records


def test_async_receivers_are_awaited_in_the_event_loop(signal: Signal) -> None:
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
