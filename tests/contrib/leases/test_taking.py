"""A lease is held by one process, thread or task at a time, with a growing fence."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connection, transaction

from django_jobqueue import LeaseLost, LeaseUnavailable
from django_jobqueue.contrib.leases import (
    lease,
    lease_rows,
    take_away_leases,
    try_lease,
)
from django_jobqueue.contrib.leases.models import Lease
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.processes import identity
from django_jobqueue.store.connection import OwnConnection
from tests.contrib.leases.conftest import Stranger, claimant, renews
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def sessions() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT application_name FROM pg_stat_activity"
            " WHERE application_name LIKE 'jobqueue lease%'"
            "   AND datname = current_database()"
        )
        return [name for (name,) in cursor.fetchall()]


def test_a_lease_is_held_in_its_block_and_free_after_it_whatever_happens(
    stranger: Stranger,
) -> None:
    with suppress(ZeroDivisionError), lease("import") as held:
        held.check()
        assert not stranger.take().fence
        raise ZeroDivisionError
    assert stranger.take().fence


def test_the_row_says_who_holds_it(stranger: Stranger) -> None:
    with lease("import", ttl=60):
        row = Lease.objects.get()
    assert (row.name, row.host) == ("import", identity.host())
    assert row.holder.startswith(f"{identity.host()}:")
    assert 59 < (row.lease_until - row.taken_at).total_seconds() < 61


def test_each_holder_has_a_greater_fence_than_all_before_it(stranger: Stranger) -> None:
    fences = []
    for _ in range(3):
        with lease("import") as held:
            fences.append(held.fence)
        fences.append(stranger.take().fence)
        stranger.release()
    assert fences == sorted(set(fences))


def test_leases_of_different_names_know_nothing_of_each_other(
    stranger: Stranger,
) -> None:
    with lease("import"), lease("export"):
        assert stranger.take("report").fence


def test_a_lease_that_somebody_else_has_is_waited_for_no_longer_than_allowed(
    stranger: Stranger,
) -> None:
    stranger.take()
    assert try_lease("import") is None
    for wait, why in ((0, "web-9:99 holds it"), (0.1, "was not free within 0.1 s")):
        held = lease("import", wait=wait)
        with pytest.raises(LeaseUnavailable, match=why) as caught, held:
            pytest.fail("it is held elsewhere")
        assert (caught.value.name, caught.value.holder) == ("import", "web-9:99")


def test_a_lease_without_a_block_is_held_until_it_is_released(
    stranger: Stranger,
) -> None:
    held = try_lease("import")
    assert held is not None
    assert not stranger.take().fence
    held.release()
    held.release()  # does nothing
    assert stranger.take().fence
    with pytest.raises(LeaseLost, match="it was released"):
        held.check()


def test_a_thread_that_holds_a_lease_cannot_wait_for_it(stranger: Stranger) -> None:
    with lease("import"):
        assert try_lease("import") is None
        again = lease("import")
        with pytest.raises(RuntimeError, match="leases are not reentrant"), again:
            pytest.fail("it is held here")


def test_another_thread_of_the_process_waits_like_anybody_else() -> None:
    order: list[Any] = []

    def work() -> None:
        with lease("import") as held:
            order.append(("second", held.fence))
        connection.close()

    with lease("import") as held:
        thread = threading.Thread(target=work)
        thread.start()
        eventually(lambda: Lease.objects.get().awaited)
        order.append(("first", held.fence))
    thread.join(20)
    assert order == [("first", 1), ("second", 2)]


def test_a_lease_holds_whatever_becomes_of_the_transaction_around_it(
    stranger: Stranger,
) -> None:
    with transaction.atomic():
        held = try_lease("import")
        transaction.set_rollback(True)
    assert held is not None
    assert not stranger.take().fence
    held.release()


def test_without_a_lease_there_is_no_thread_and_no_connection() -> None:
    with lease("import"), lease("export"):
        names = [thread.name for thread in threading.enumerate()]
        assert names.count("lease renewer") == 1
        assert sessions() == ["jobqueue leases"]
    eventually(lambda: not sessions(), what=sessions)
    assert not renews()


def test_a_lease_whose_answer_was_lost_is_taken_again(own: OwnConnection) -> None:
    wanted = claimant()
    first, second = lease_rows.take(own, wanted), lease_rows.take(own, wanted)
    assert 0 < first.fence < second.fence


def test_what_cannot_be_is_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"name": ""}, "must be a text that is not empty"),
        ({"name": "x" * 201}, "at most 200 characters"),
        ({"name": "a\nb"}, "no control character"),
        ({"name": 7}, "not 7"),
        ({"ttl": 1.9}, "ttl must be a number of seconds from 2 to 86,400"),
        *[({"ttl": ttl}, "ttl must be") for ttl in (10**400, float("nan"), "15")],
        *[({"wait": wait}, "wait must be") for wait in (-1, True)],
    ]
    for arguments, text in cases:
        with pytest.raises(InvalidArguments, match=text):
            lease(**{"name": "import", **arguments})


def test_async_code_is_referred_to_what_it_can_use() -> None:
    async def call(function: Callable[[str], object]) -> None:
        function("import")

    with pytest.raises(SynchronousOnlyOperation, match=r"await alease\(…\)"):
        asyncio.run(call(lease))
    with pytest.raises(SynchronousOnlyOperation, match=r"sync_to_async\(try_lease\)"):
        asyncio.run(call(try_lease))


def test_a_lease_that_is_taken_away_is_free_and_its_fence_grows(
    stranger: Stranger,
) -> None:
    with lease("import") as held:
        assert take_away_leases("import") == ["import"]
        answer = stranger.take()
        assert answer.fence > held.fence + 1
    assert take_away_leases(["export"]) == []
