"""No table grows for ever: its rows are deleted when they are old, or there is a reason
why they are few."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db.models import Model
from django.utils import timezone

from django_jobqueue import rooms
from django_jobqueue.host.maintenance import pruner
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.pruner import Pruner
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import OwnConnection
from tests.admin.scene import insert

OLD = timezone.now() - timedelta(days=500)

# Rows of the code, or that operators make by hand.
FEW = {
    "jobtype": "one for each handler",
    "keylimit": "one for each limit of the code",
    "keyoverride": "operators make them, and clear them",
    "queue": "those that somebody paused",
    "schedule": "the code's, and those that operators make and delete",
    "savedview": "a hundred of a user, who deletes them",
    "figures": "one",
    "databaseidentity": "one",
    "lease": "one for each name in the code",
}
# Rows that go with others.
WITH_OTHERS = {
    "queuedjob": "they are archived",
    "archivedjob": "RETENTION, in tests/store/test_prune.py",
    "failure": "with their job",
    "report": "with their job",
    "alertdelivery": "with their alert",
    "archivedcount": "added up into the totals",
    "erasure": "the record of what was erased is kept; its value is forgotten",
}
# Rows that are old, and gone after a pass of the pruner.
ROWS: dict[str, dict[str, Any]] = {
    "alert": {
        "condition": "backlog",
        "state": "resolved",
        "resolved_at": OLD,
        "fired_at": OLD,
        "last_seen": OLD,
    },
    "auditentry": {"verb": "pause", "by": "anna", "at": OLD},
    "bucket": {"limit_key": "x", "full_at": OLD},
    "bulkoperation": {
        "kind": "cancel",
        "state": "done",
        "selection": {},
        "created_at": OLD,
        "finished_at": OLD,
    },
    "failuregroup": {
        "fingerprint": uuid4(),
        "coarse": uuid4(),
        "error_class": "x",
        "frame": "x",
        "first_seen": OLD,
        "last_seen": OLD,
    },
    "failurerollup": {"fingerprint": uuid4(), "bucket": OLD},
    "firing": {"schedule": "x", "fires_at": OLD, "created_at": OLD, "outcome": "fired"},
    "host": {
        "id": uuid4(),
        "name": "web-1:1",
        "host": "web-1",
        "stopped_at": OLD,
        "lease_until": OLD,
    },
    "jobsearch": {"id": uuid4(), "query": "x", "selections": {}, "created_at": OLD},
    "rollup": {"job_type": "x", "queue": "y", "bucket": OLD},
    "token": {"name": "old", "digest": "x", "revoked_at": OLD},
    "total": {"job_type": "x", "queue": "y", "changed_at": OLD},
    "uniquewindow": {"key": uuid4(), "job_id": uuid4(), "held_until": OLD},
    "worker": {
        "name": "web-1:2",
        "host": "web-1",
        "pid": 2,
        "threads": 1,
        "job_types": [],
        "versions": {},
        "lease_until": OLD,
        "state": "stopped",
        "stopped_at": OLD,
    },
}


def model(name: str) -> type[Model]:
    return next(one for one in rooms.models() if one._meta.model_name == name)


def test_every_table_is_pruned_or_stays_small() -> None:
    tables = {
        str(one._meta.model_name)
        for one in rooms.models()
        if one._meta.managed and not one._meta.proxy
    }
    known = [*FEW, *WITH_OTHERS, *ROWS]
    assert len(set(known)) == len(known)
    assert tables - set(known) == set()


@pytest.mark.django_db(transaction=True)
def test_what_is_old_is_gone_after_a_pass_of_the_pruner(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruner, "HOUR", 0.0)
    for name, columns in ROWS.items():
        insert(model(name), columns)
    made = Pruner(own, DeadlineWatch(own, WorkerConfig()))
    while made.tick() < 60.0:
        pass
    left = {name for name in ROWS if model(name)._default_manager.exists()}
    assert left == set()
