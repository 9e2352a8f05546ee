"""The timeline of a job: first it is created, last it is over, and time goes on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise, product
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.admin.jobs.job_attempts import Attempt, Attempts, Run
from django_jobqueue.admin.jobs.timeline import Step, timeline
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.operations import bulk, bulk_steps
from django_jobqueue.search.selection import Selection, Table
from tests.admin.pages import get, page_of
from tests.admin.scene import ADD, archived
from tests.admin.units import context
from tests.sample import jobs
from tests.support.hand_driven import HandDriven

SECOND = timedelta(seconds=1)
NOW = timezone.now()


def failed() -> Any:
    """A job that is over; it stays, and is not what is looked at."""
    return archived(status="failed", data={"a": 1, "b": 2})


def by_operation() -> None:
    failed()
    made = bulk.draft("replay", Selection(Table.ARCHIVED))
    assert bulk.start(made.id)
    bulk_steps.step(made.id, max_rows=10)


def by_sql() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobqueue_queuedjob (job_type, data) VALUES (%s, %s)",
            [ADD, '{"a": 1, "b": 2}'],
        )


WAYS: dict[str, Callable[[], Any]] = {
    "one": lambda: jobs.add.enqueue(1, 2),
    "many": lambda: jobs.add.enqueue_many({"a": 1, "b": n} for n in range(3)),
    "sql": by_sql,
    "replay": lambda: operations.replay(failed()),
    "replay of many": lambda: operations.replay_many([failed()]),
    "bulk operation": by_operation,
    "by hand": lambda: operations.enqueue(ADD, {"a": 1, "b": 2}),
    "run now": lambda: operations.run_now(
        [jobs.add.using(run_after=timedelta(hours=1)).enqueue(1, 2).id]
    ),
}


@pytest.mark.django_db
def test_however_it_was_enqueued_it_is_created_first(
    anna: Client, worker: HandDriven
) -> None:
    for way, enqueue in WAYS.items():
        enqueue()
        made = QueuedJob.objects.filter(job_type_id=ADD).latest("created_at")
        steps = context(anna, "queuedjob", made.pk)["page"].timeline
        assert steps[0].label == "created", way
        if way != "run now":
            assert len(steps) == 1, way
            assert steps[0].note == "due at once", way
        worker.work()
        assert ArchivedJob.objects.get(pk=made.pk).status == "succeeded"
        steps = context(anna, "archivedjob", made.pk)["page"].timeline
        labels = [str(step.label) for step in steps]
        assert labels[0] == "created", way
        assert labels[-2:] == ["started", "succeeded"], way
    page = get(anna, page_of("archivedjob", made.pk))
    section = page.html.split('class="jq-timeline"')[1].split("</ol>")[0]
    shown = [part.split("</b>")[0] for part in section.split("<b>")[1:]]
    assert shown == labels


class Job:
    def __init__(self, due: timedelta) -> None:
        self.created_at = NOW
        self.run_after = NOW + due


def attempts(*starts: timedelta) -> Attempts:
    """Attempts that began then, after the creation."""
    made = [
        Attempt(
            number=number,
            style="failed",
            end="failed",
            started_at=NOW + start,
            finished_at=NOW + start + SECOND / 2,
        )
        for number, start in enumerate(starts, 1)
    ]
    return Attempts(runs=[Run([one]) for one in reversed(made)])


DUE = [timedelta(days=-1), -SECOND, -SECOND / 1e6, SECOND * 0, SECOND / 1e6]
DUE += [SECOND / 2, SECOND * 3, timedelta(hours=1)]
STARTS: list[tuple[timedelta, ...]] = [(), (SECOND,), (SECOND, 5 * SECOND)]


def test_time_goes_on_from_the_creation_to_the_end() -> None:
    for due, starts, over in product(DUE, STARTS, (True, False)):
        end = Step("over", NOW + 9 * SECOND, style="failed") if over else None
        found = timeline(Job(due), [], attempts(*starts), end)
        labels = [step.label for step in found]
        case = (due, starts, over, labels)
        assert labels[0] == "created", case
        assert labels.count("created") == 1, case
        assert not over or labels[-1] == "over", case
        assert all(one.at <= other.at for one, other in pairwise(found)), case
        assert "due" in labels or "due" in found[0].note, case
        assert [label for label in labels if "attempt" in label] == [
            f"attempt {number}" for number in range(1, len(starts) + 1)
        ], case


def test_attempts_with_one_number_are_not_a_range() -> None:
    """A crash gives the attempt back, so that the next one has its number."""
    one = attempts(SECOND).runs[0].newest
    run = Run([one, one, one])
    labels = [step.label for step in timeline(Job(SECOND * 0), [], Attempts([run]))]
    assert labels == ["created", "attempt 1"]
