"""Who waits for a lease gets it when it is free, with notifications or without."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import override_settings

from django_jobqueue import LeaseUnavailable
from django_jobqueue.contrib.leases import (
    alease,
    attempts,
    lease,
    lease_rows,
    take_away_leases,
)
from django_jobqueue.contrib.leases.models import Lease
from django_jobqueue.exceptions import StoreUnavailable
from tests.contrib.leases.conftest import Stranger, renews
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = 3600.0


class Waiter:
    """A thread that waits for a lease, and holds it for a moment."""

    def __init__(self, **options: Any) -> None:
        self.fence = 0
        self.error: BaseException | None = None
        self._options = options
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            with lease("import", **self._options) as held:
                self.fence = held.fence
        except BaseException as error:
            self.error = error
        connection.close()

    def join(self) -> int:
        self.thread.join(60)
        assert not self.thread.is_alive()
        if self.error is not None:
            raise self.error
        return self.fence


@pytest.fixture
def _only_notifications(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "CHECK_HEARD", HOUR)
    monkeypatch.setattr(attempts, "CHECK_UNHEARD", HOUR)


@pytest.fixture
def _polling() -> Iterator[None]:
    with override_settings(JOBQUEUE={**settings.JOBQUEUE, "LISTEN": False}):
        yield


@pytest.mark.usefixtures("_only_notifications")
def test_a_release_is_heard_by_those_who_wait_one_after_the_other(
    stranger: Stranger,
) -> None:
    stranger.take(ttl=HOUR)
    waiters = [Waiter() for _ in range(4)]
    eventually(hears)
    stranger.release()
    assert sorted(waiter.join() for waiter in waiters) == [2, 3, 4, 5]


@pytest.mark.usefixtures("_only_notifications")
def test_a_lease_that_is_taken_away_is_heard_of_too(stranger: Stranger) -> None:
    stranger.take(ttl=HOUR)
    waiter = Waiter()
    eventually(hears)
    take_away_leases("import")
    assert waiter.join() == 3


def hears() -> bool:
    """Whether a waiter has said so, and would hear of a release."""
    # private: only what it does shows that it listens
    return Lease.objects.get().awaited and attempts._listener.hears


def test_nobody_is_notified_of_a_lease_that_nobody_waits_for(
    stranger: Stranger, other: Any
) -> None:
    with other.raw() as listening:
        listening.execute("LISTEN jobqueue")
        with lease("import"):
            pass
        assert [n.payload for n in listening.notifies(timeout=0.3)] == []
        listening.execute("UNLISTEN *")


@pytest.mark.usefixtures("_polling")
def test_without_notifications_the_release_is_noticed_by_polling(
    stranger: Stranger,
) -> None:
    stranger.take(ttl=HOUR)
    waiter = Waiter()
    eventually(lambda: Lease.objects.get().awaited)
    assert attempts._listener._listener is None  # private: as above
    stranger.release()
    assert waiter.join() == 2


def test_the_lease_of_a_dead_process_is_had_when_it_has_lapsed(
    stranger: Stranger,
) -> None:
    for listens, fence in ((True, 2), (False, 4)):
        stranger.take(ttl=0.3)
        with override_settings(JOBQUEUE={**settings.JOBQUEUE, "LISTEN": listens}):
            assert Waiter().join() == fence


def test_while_the_database_cannot_be_used_the_wait_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries: list[int] = []
    take = lease_rows.take

    def fail_at_first(*args: Any) -> Any:
        tries.append(1)
        if len(tries) < 4:
            raise StoreUnavailable("it is away", retry_in=0.01)
        return take(*args)

    monkeypatch.setattr(lease_rows, "take", fail_at_first)
    assert Waiter(wait=60).join() == 1
    tries.clear()
    with pytest.raises(StoreUnavailable):
        Waiter(wait=0).join()


# Async code.


def test_async_code_holds_a_lease_in_its_block(stranger: Stranger) -> None:
    async def hold() -> bool:
        async with alease("import") as held:
            held.check()
            return bool(stranger.take().fence)

    assert not asyncio.run(hold())
    assert stranger.take().fence


def test_many_wait_in_one_event_loop_and_one_at_a_time_has_it() -> None:
    inside: list[int] = []

    async def work() -> int:
        async with alease("import") as held:
            inside.append(1)
            assert len(inside) == 1
            await asyncio.sleep(0.01)
            inside.clear()
            return held.fence

    async def all_of_them() -> list[int]:
        return await asyncio.gather(*(work() for _ in range(5)))

    assert sorted(asyncio.run(all_of_them())) == [1, 2, 3, 4, 5]


def test_async_code_waits_no_longer_than_allowed_and_not_for_its_own(
    stranger: Stranger,
) -> None:
    stranger.take()

    async def hold(name: str, wait: float | None) -> None:
        async with alease("export"), alease(name, wait=wait):
            pytest.fail("it is held")

    with pytest.raises(LeaseUnavailable):
        asyncio.run(hold("import", 0.1))
    with pytest.raises(RuntimeError, match="not reentrant"):
        asyncio.run(hold("export", None))


def test_a_task_that_is_cancelled_while_it_waits_leaves_nothing(
    stranger: Stranger,
) -> None:
    stranger.take(ttl=HOUR)

    async def hold() -> None:
        async with alease("import"):
            pytest.fail("it is held elsewhere")

    async def cancel_it() -> None:
        waiting = asyncio.create_task(hold())
        # private: as above
        await asyncio.to_thread(eventually, lambda: attempts._listener._waiting)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(cancel_it())
    assert not renews()
    assert not attempts._listener._waiting  # private: as above


def test_a_task_that_is_cancelled_while_it_takes_the_lease_gives_it_back(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_go_on = threading.Event(), threading.Event()
    take = lease_rows.take

    def take_slowly(*args: Any) -> Any:
        answer = take(*args)
        began.set()
        may_go_on.wait(20)
        return answer

    async def hold() -> None:
        async with alease("import"):
            pytest.fail("it was cancelled")

    async def cancel_it() -> None:
        taking = asyncio.create_task(hold())
        await asyncio.to_thread(began.wait, 20)
        taking.cancel()
        await asyncio.sleep(0)
        may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await taking

    with monkeypatch.context() as patched:
        patched.setattr(lease_rows, "take", take_slowly)
        asyncio.run(cancel_it())
    eventually(lambda: stranger.take().fence)
