"""``jobqueue sleep`` and ``jobqueue wake``."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from django_jobqueue.checks import check_server
from django_jobqueue.models import AuditEntry, DatabaseIdentity, Host
from django_jobqueue.stats.findings import Level
from django_jobqueue.stats.host_checks import sleep
from django_jobqueue.store import database_identity
from django_jobqueue.store.connection import DjangoDatabase
from tests.commands.conftest import jobqueue, refusal

pytestmark = pytest.mark.django_db


def host(lease: float) -> None:
    until = timezone.now() + timedelta(seconds=lease)
    Host.objects.create(id=uuid4(), name="a:1", lease_until=until)


def reported() -> tuple[Level, list[str | None]]:
    """By doctor, and by ``manage.py check --database``."""
    (finding,) = sleep(DjangoDatabase())
    found = check_server(None, databases=["default"])
    return finding.level, [message.id for message in found]


def test_a_database_is_put_to_sleep_and_woken() -> None:
    assert reported() == (Level.OK, [])
    said = "Hosts that start do nothing here until jobqueue wake.\n"
    assert jobqueue("sleep").out == said
    assert reported() == (Level.PROBLEM, ["jobqueue.W021"])
    assert jobqueue("wake").out == "Hosts work in this database from now on.\n"
    assert reported() == (Level.OK, [])
    assert jobqueue("wake").out == "Hosts may already work in this database.\n"
    verbs = list(AuditEntry.objects.order_by("id").values_list("verb", flat=True))
    assert verbs == ["put to sleep", "wake"]


def test_a_copy_is_woken() -> None:
    DatabaseIdentity.objects.create(id=1, identity="other", server_version=18)
    assert reported() == (Level.PROBLEM, ["jobqueue.W021"])
    jobqueue("wake")
    assert reported() == (Level.OK, [])


def test_it_is_not_put_to_sleep_while_hosts_work() -> None:
    """Those of the original are in the copy, too, and their leases have lapsed."""
    host(lease=-1.0)
    jobqueue("sleep")
    jobqueue("wake")
    host(lease=15.0)
    assert refusal("sleep") == (
        "Stop the hosts of this database first, because they would go on (1 alive)."
    )
    assert reported() == (Level.OK, [])


def test_a_refusal_leaves_a_copy_asleep() -> None:
    """It was restored less than a lease after the dump was made."""
    DatabaseIdentity.objects.create(id=1, identity="other", server_version=18)
    host(lease=15.0)
    refusal("sleep")
    assert DatabaseIdentity.objects.get().identity == "other"


def test_a_host_that_starts_meanwhile_refuses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that writes its row later reads that it is to sleep."""
    real = database_identity.put_to_sleep

    def after_a_start(db: DjangoDatabase) -> database_identity.Row | None:
        assert database_identity.check_in(db) is None
        host(lease=15.0)
        return real(db)

    monkeypatch.setattr(database_identity, "put_to_sleep", after_a_start)
    assert "would go on" in refusal("sleep")
    assert reported() == (Level.OK, [])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("flag", ["--drain", "--drain-all"])
def test_a_drain_in_it_is_refused_since_it_would_never_end(flag: str) -> None:
    DatabaseIdentity.objects.create(id=1, identity="other", server_version=18)
    with pytest.raises(CommandError, match="is a copy.* run: manage.py jobqueue wake"):
        call_command("runworkers", flag)


def test_a_fixture_leaves_out_which_database_it_is() -> None:
    """The hosts of that which loads it would sleep."""
    DatabaseIdentity.objects.create(id=1, identity="this", server_version=18)
    fixture = StringIO()
    call_command("dumpdata", "jobqueue.databaseidentity", stdout=fixture)
    assert json.loads(fixture.getvalue()) == []
