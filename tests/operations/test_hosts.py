"""What whole hosts are asked is written to their rows, if it can be done."""

from __future__ import annotations

import operator
import os
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.host.maintenance.host_row import HostRow
from django_jobqueue.models import AuditEntry, Host
from django_jobqueue.processes import identity
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import host_rows
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from tests.stats.rows import host
from tests.support.tables import differing, refusal

pytestmark = pytest.mark.django_db


asks_at_once = pytest.mark.usefixtures("requests_commit")


@asks_at_once
def test_requests_add_up_and_are_counted() -> None:
    one = host()
    operations.ask_hosts(one.pk, "drain")
    operations.scale_hosts(one.pk, processes=4)
    operations.scale_hosts(str(one.pk), queues=("mail",), processes=3)
    operations.ask_hosts([one.pk], "restart")
    operations.ask_hosts([one.pk], "resume")
    operations.ask_hosts([one.pk], "stop")
    one.refresh_from_db()
    assert one.desired == {
        "number": 6,
        "draining": False,
        "processes": 3,
        "queues": ["mail"],
        "restart": 4,
        "stop": 6,
    }
    assert one.pending == one.desired


@asks_at_once
def test_those_that_are_gone_are_not_asked(operated: list[dict[str, Any]]) -> None:
    one = host("web-1:1")
    now = timezone.now()
    lapsed = host("web-2:2", lease_until=now - timedelta(seconds=1))
    ended = host("web-3:3", state="stopped", stopped_at=now)
    ids = [one.pk, lapsed.pk, ended.pk, uuid4()]
    assert operations.ask_hosts(ids, "drain", by="anna") == [one.pk]
    assert operations.scale_hosts(ids, threads=1, by="anna") == [one.pk]
    assert not Host.objects.exclude(pk=one.pk).exclude(desired={}).exists()
    about: dict[str, Any] = {"hosts": ["web-1:1"]}
    verbs = {"drain hosts": about, "scale hosts": {**about, "threads": 1}}
    assert {told["verb"]: told["details"] for told in operated} == verbs
    assert [told["count"] for told in operated] == [1, 1]
    entries = AuditEntry.objects.order_by("pk").values_list("verb", "by", "about")
    assert list(entries) == [(verb, "anna", ["web-1:1"]) for verb in verbs]


@pytest.mark.django_db(transaction=True)
def test_hosts_are_asked_when_the_transaction_is_committed() -> None:
    one = host()
    with transaction.atomic():
        assert operations.scale_hosts(one.pk, processes=4) == [one.pk]
        assert Host.objects.get().desired == {}
    assert Host.objects.get().desired == {"number": 1, "processes": 4}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "Give processes, threads, async_slots or queues"),
    ({"processes": 101}, "processes must be a whole number from 0 to 100, not 101."),
    ({"processes": -1}, "processes must be a whole number from 0 to 100, not -1."),
    ({"threads": 1_001}, "threads must be a whole number from 0 to 1,000, not 1001."),
    ({"threads": True}, "threads must be a whole number from 0 to 1,000, not True."),
    ({"threads": "4"}, "threads must be a whole number from 0 to 1,000, not '4'."),
    ({"async_slots": 10_001}, "async_slots must be a whole number from 0 to 10,000"),
    ({"queues": "mail"}, "queues must be a list of names, or None for every queue"),
    ({"queues": []}, "queues must be a list of names, or None for every queue"),
    ({"queues": ["a b"]}, "queues has a name that must have no space"),
    ({"queues": ["q"] * 101}, "queues must have at most 100 names, not 101."),
    ({"threads": 0, "async_slots": 0}, "web-1:7: With 0 threads and 0 async slots"),
]


def test_what_cannot_be_is_refused_before_it_is_written() -> None:
    one, embedded = host(), host("web-1:7/embedded", embedded=True)

    def ask(changes: dict[str, Any]) -> str:
        return refusal(
            InvalidArguments, lambda: operations.scale_hosts(one.pk, **changes)
        )

    assert differing(REFUSED, ask, operator.contains) == []
    verbs = [
        ([one.pk], "explode", "A host can be asked to drain, resume, restart or stop,"),
        ([embedded.pk, one.pk], "restart", "web-1:7/embedded is a worker embedded in"),
        *(
            (wrong, "drain", ("is not the id of a host"))
            for wrong in ("web-1:7", 7, None)
        ),
    ]
    ask_verb = partial(refusal, InvalidArguments, operations.ask_hosts)
    assert differing(verbs, ask_verb, operator.contains) == []
    assert not Host.objects.exclude(desired={}).exists()


@asks_at_once
def test_an_embedded_worker_is_drained_and_stopped_but_not_scaled() -> None:
    one = host("web-1:7/embedded", embedded=True)
    for what in ("drain", "resume", "stop"):
        assert operations.ask_hosts(one.pk, what) == [one.pk]
    with pytest.raises(InvalidArguments, match="its settings say what it has"):
        operations.scale_hosts(one.pk, threads=2)


def test_a_killed_host_is_lost_when_another_starts_on_its_machine(
    own: OwnConnection,
) -> None:
    mine = identity.identity(os.getpid())
    gone = "/".join([*mine.split("/")[:3], "1"])
    here = {"host": identity.host()}
    host("dead", identity=gone, **here)
    host("alive", identity=mine, **here)
    host("elsewhere", identity=gone, host="web-9")
    host("of an older release", **here)
    host("ended", identity=gone, state="stopped", stopped_at=timezone.now(), **here)
    self = host("myself", identity=gone, **here)
    config = WorkerConfig(host_id=self.pk, supervisor="myself")
    HostRow(ProcessTable(1), config).record_lost(own)
    lost = Host.objects.filter(state="lost")
    assert [(row.name, row.stopped_at is None) for row in lost] == [("dead", False)]
    assert operations.ask_hosts(lost[0].pk, "stop") == []
    ended = Host.objects.exclude(stopped_at=None).values_list("name", flat=True)
    assert sorted(ended) == ["dead", "ended"]


def test_a_row_is_pruned_a_day_after_its_host() -> None:
    now = timezone.now()
    for name, age in (("web-1:1", 23), ("web-2:2", 25)):
        then = now - timedelta(hours=age)
        host(name, lease_until=then)
        host(f"{name}0", stopped_at=then)
    host_rows.forget(DjangoDatabase())
    names = Host.objects.order_by("name").values_list("name", flat=True)
    assert list(names) == ["web-1:1", "web-1:10"]


def test_a_host_with_the_process_id_of_one_that_ended_does_not_obey_for_it() -> None:
    one = host(desired={"number": 1, "stop": 1}, state="stopped")
    report = host_rows.HostReport(
        **{"id": UUID(str(one.pk)), "name": one.name, "host": one.host},
        **{"identity": "", "embedded": False, "release": "", "queues": ["mail"]},
        **{"processes": 1, "threads": 1, "async_slots": 1, "state": "running"},
        **{"applied": {}, "error": ""},
    )
    db = DjangoDatabase()
    assert host_rows.keep(db, report, 15.0) == one.desired
    Host.objects.update(stopped_at=timezone.now())
    assert host_rows.keep(db, report, 15.0) == {}
    row = Host.objects.get()
    assert (row.queues, row.stopped_at, row.desired) == (["mail"], None, {})
