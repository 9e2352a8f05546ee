"""``jobqueue leases``, and the part of ``jobqueue status`` about standby."""

from __future__ import annotations

import getpass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from django_jobqueue.contrib.leases.models import Lease
from django_jobqueue.models import AuditEntry
from tests.commands.conftest import jobqueue, not_refused

pytestmark = pytest.mark.django_db


def leased(name: str, left: float = 9.5, **columns: Any) -> Lease:
    """A lease that somebody took a minute ago, and has for so many seconds."""
    now = timezone.now()
    values: dict[str, Any] = {"token": uuid4(), "holder": "web-1:7", "host": "web-1"}
    return Lease.objects.create(
        name=name,
        fence=1_234,
        taken_at=now - timedelta(minutes=1),
        lease_until=now + timedelta(seconds=left),
        **{**values, **columns},
    )


def test_the_list_says_who_holds_which_lease_and_for_how_long() -> None:
    leased("import")
    leased("report", left=-3, holder="web-2:9")
    leased("free", token=None)
    lines = [line.split() for line in jobqueue("leases").out.splitlines()]
    assert [line[:3] for line in lines] == [
        ["Lease", "State", "Holder"],
        ["import", "held", "web-1:7"],
        ["report", "lapsed", "web-2:9"],
    ]
    assert lines[1][-1] == "1,234"
    assert "free" in jobqueue("leases list --all").out
    Lease.objects.all().delete()
    assert jobqueue("leases").out == "No lease is held.\n"


def test_the_list_for_programs_has_stable_keys() -> None:
    row = leased("import")
    (one,) = jobqueue("leases --format json").json
    assert 0 < one.pop("left") < 10
    assert one == {
        "name": "import",
        "state": "held",
        "holder": "web-1:7",
        "host": "web-1",
        "since": row.taken_at.isoformat(),
        "until": row.lease_until.isoformat(),
        "fence": 1_234,
    }


@pytest.mark.dear
def test_a_lease_is_taken_away_and_the_audit_says_by_whom() -> None:
    leased("import")
    assert jobqueue("leases take-away import").out == "1 lease was taken away.\n"
    row = Lease.objects.get()
    assert (row.token, row.fence) == (None, 1_235)
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.about) == ("take away leases", ["import"])
    assert entry.by == f"command line ({getpass.getuser()})"
    again = jobqueue("leases take-away import")
    assert (again.out, again.err) == ("", "The lease 'import' was not held.\n")


def test_programs_are_told_the_names_that_were_taken_away() -> None:
    leased("import")
    leased("free", token=None)
    answer = jobqueue("leases take-away import free --format json")
    assert answer.json == ["import"]


def test_what_makes_no_sense_is_refused() -> None:
    leased("import")
    reasons = {
        "take-away": "Name the leases to take away",
        "take-away imports": "There is no lease 'imports'. Did you mean 'import'",
        "list import": "list takes no name",
        "take-away import --all": "--all goes with list alone",
        "steal import": "has no verb 'steal'",
    }
    assert not_refused("leases", reasons) == {}
    assert Lease.objects.get().fence == 1_234


def test_the_status_says_which_host_is_active() -> None:
    assert "Standby" not in jobqueue("status").out
    leased("runworkers:main")
    leased("runworkers:reports", left=-1, holder="web-2:9")
    leased("runworkersx")
    leased("runworkers:old", left=-90_000, token=None)
    section = jobqueue("status").out.partition("\nStandby\n")[2].partition("\n\n")[0]
    lines = section.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["main", "reports"]
    assert "web-1:7" in lines[0]
    assert "none (the last one was web-2:9)" in lines[1]
    main, reports = jobqueue("status --format json").json["standby"]
    assert (main["name"], main["active"], main["fence"]) == ("main", "web-1:7", 1_234)
    assert (reports["active"], reports["host"]) == (None, "web-1")
