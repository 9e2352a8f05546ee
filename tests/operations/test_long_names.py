"""A user name may be as long as the project's user model lets it, such as an e-mail
address of 254 characters; whoever acts is kept whole everywhere."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import pytest
from django.db import models

from django_jobqueue import operations as op
from django_jobqueue import rooms
from django_jobqueue.contrib.console import job_searches, saved_views
from django_jobqueue.contrib.console.models import SavedView
from django_jobqueue.contrib.http.models import Token
from django_jobqueue.contrib.http.token_operations import create_token
from django_jobqueue.contrib.privacy import personal_data
from django_jobqueue.contrib.privacy.models import Erasure
from django_jobqueue.contrib.schedules import operations as schedule_operations
from django_jobqueue.contrib.schedules.models import Firing, Schedule
from django_jobqueue.models import (
    AuditEntry,
    FailureGroup,
    JobType,
    Queue,
)
from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.testing import drain
from tests.sample import jobs
from tests.support.rows import queued

WHO: Final = f"{'a' * 64}@{'.'.join(['department-of-very-long-names'] * 6)}.org"
LONG: Final = WHO.ljust(254, "x")
ADD: Final = jobs.add.name

pytestmark = pytest.mark.django_db


@pytest.fixture
def acts() -> dict[str, Callable[[], Any]]:
    """Of each thing that an operator does, one."""
    by = {"by": LONG}
    failed = jobs.fail.enqueue()
    drain(raise_errors=False)
    one, two, three, four = (
        jobs.add.using(run_after=timedelta(hours=1)).enqueue(n).id for n in range(4)
    )
    schedule_operations.create("mine", ADD, rule="every 2 hours", data={"a": 1})
    group = FailureGroup.objects.get().pk
    return {
        "pause": lambda: op.pause(ADD, reason="x", **by),
        "pause queue": lambda: op.pause("default", queues=True, reason="x", **by),
        "override": lambda: op.override(ADD, timeout=timedelta(seconds=60), **by),
        "pause schedule": lambda: schedule_operations.pause("mine", reason="x", **by),
        "run schedule": lambda: schedule_operations.run_now("mine", **by),
        "replay": lambda: op.replay(failed.id, **by),
        "cancel": lambda: op.cancel([one], reason="x", **by),
        "run now": lambda: op.run_now([two], **by),
        "fail": lambda: op.fail([three], reason="x", **by),
        "edit": lambda: op.edit_data(four, {"a": 33}, **by),
        "resolve": lambda: op.resolve(group, **by),
        "assign": lambda: op.assign(group, LONG, **by),
        "token": lambda: create_token("t", "read", **by),
        "find": lambda: personal_data.find("anna@example.com", here=True, **by),
        "search": lambda: job_searches.start(
            "x", {Table.QUEUED: Selection(Table.QUEUED)}, **by
        ),
        "save": lambda: saved_views.save(list="queuedjob", name="v", query="q=x", **by),
        "enqueue": lambda: op.enqueue(ADD, {"a": 1}, **by),
    }


@pytest.mark.dear
def test_whoever_acts_is_kept_whole(acts: dict[str, Callable[[], Any]]) -> None:
    assert len(LONG) == 254
    for act in acts.values():
        act()
    assert set(AuditEntry.objects.values_list("by", flat=True)) == {LONG}
    assert JobType.objects.get(pk=ADD).paused_by == LONG
    assert Queue.objects.get(pk="default").paused_by == LONG
    assert Schedule.objects.get(pk="mine").paused_by == LONG
    assert Firing.objects.get(by__gt="").by == LONG
    assert FailureGroup.objects.get().assignee == LONG
    assert Token.objects.get().created_by == LONG
    assert SavedView.objects.get().owner == LONG
    assert Erasure.objects.get().created_by == LONG
    assert LONG in {job.enqueued_by for job in queued()}


def test_no_column_bounds_the_name_of_a_user() -> None:
    names = ("by", "assignee", "owner", "enqueued_by")
    bounded = [
        f"{model.__name__}.{field.name}"
        for model in rooms.models()
        for field in model._meta.concrete_fields
        if (field.name in names or field.name.endswith("_by"))
        and isinstance(field, models.CharField)
    ]
    assert bounded == ["JobType.unique_by"], "which names parameters"
