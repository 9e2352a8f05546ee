"""In the tests of a project leases are in memory."""

from __future__ import annotations

import threading

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import Group
from django.db import connection
from django.test import TestCase, override_settings

from django_jobqueue import LeaseLost, LeaseUnavailable
from django_jobqueue.contrib.leases import alease, lease, take_away_leases, try_lease
from django_jobqueue.contrib.leases.models import Lease
from tests.contrib.leases.conftest import renews

IMMEDIATE = {**settings.JOBQUEUE, "MODE": "immediate"}


class InTestCase(TestCase):
    """Within the transaction of a test, which no other connection sees."""

    def test_leases_are_in_memory(self) -> None:
        with lease("import") as held, held.atomic():
            assert not renews()
            held.check()
            Group.objects.create(name=f"by {held.fence}")
            assert try_lease("import") is None
        assert not Lease.objects.exists()
        assert Group.objects.exists()

    def test_async_code_has_them_too(self) -> None:
        async def hold() -> None:
            async with alease("import") as held:
                held.check()
                assert not renews()

        async_to_sync(hold)()

    async def test_async_tests_have_them_too(self) -> None:
        async with alease("import") as held:
            held.check()
            assert not renews()


@override_settings(JOBQUEUE=IMMEDIATE)
def test_where_an_enqueue_runs_the_job_no_database_is_needed() -> None:
    with lease("import") as held:
        held.check()
        with pytest.raises(RuntimeError, match="not reentrant"), lease("import"):
            pytest.fail("it is held here")


@override_settings(JOBQUEUE=IMMEDIATE)
def test_another_thread_waits_until_it_is_free() -> None:
    order: list[str] = []
    given_up = threading.Event()

    def work() -> None:
        try:
            with lease("import", wait=0.05):
                order.append("too early")
        except LeaseUnavailable:
            given_up.set()
        with lease("import"):
            order.append("second")

    thread = threading.Thread(target=work)
    with lease("import"):
        thread.start()
        assert given_up.wait(20)
        order.append("first")
    thread.join(20)
    assert order == ["first", "second"]


@override_settings(JOBQUEUE=IMMEDIATE)
@pytest.mark.django_db
def test_a_test_can_take_a_lease_away_to_see_what_comes_of_it() -> None:
    with lease("import") as held:
        assert take_away_leases("import") == ["import"]
        with pytest.raises(LeaseLost):
            held.check()
        with lease("import") as second:
            assert second.fence > held.fence + 1
    connection.close()
