"""Each option of a job reaches its row, whichever statement inserts it; each option of
a schedule reaches the row of the schedule."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import override_settings
from django.utils import timezone

from django_jobqueue import InvalidArguments, enqueue
from django_jobqueue.contrib.schedules import due_schedules, schedule_rows
from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.contrib.schedules.scheduler import fire
from django_jobqueue.domain.job_options import OF_JOB
from django_jobqueue.domain.policy import READABLE
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedule_rules import every
from django_jobqueue.domain.schedules import schedules
from django_jobqueue.enqueueing.immediate_jobs import memory
from django_jobqueue.enqueueing.scheduling import NOT_OF_SCHEDULES, ScheduleOptions
from django_jobqueue.models import QueuedJob
from django_jobqueue.operations import cancel, replay, reschedule
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import OwnConnection
from tests.sample import jobs

pytestmark = pytest.mark.django_db(transaction=True)

LAST = READABLE[1]
LATER = datetime(2040, 5, 6, 7, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
REPORT = "tests.sample.report"

Row = dict[str, Any]
Sample = tuple[Any, Callable[[Row], Any], Any]  # given, read from the row, expected

SAMPLES: dict[str, Sample] = {
    "run_after": (LATER, lambda row: row["run_after"], LATER),
    "expires_at": (LATER, lambda row: row["expires_at"], LATER),
    "expires_in": (MINUTE, lambda row: row["expires_at"] - row["run_after"], MINUTE),
    "priority": (9, lambda row: row["priority"], 9),
    "queue": ("urgent", lambda row: row["queue"], "urgent"),
    "tags": (["a", "b"], lambda row: row["tags"], ["a", "b"]),
    "enqueued_by": ("anna", lambda row: row["enqueued_by"], "anna"),
    "max_attempts": (4, lambda row: row["max_attempts"], 4),
    "timeout": (MINUTE, lambda row: row["timeout"], MINUTE),
    "backoff": ("quartic", lambda row: row["backoff"]["policy"], "quartic"),
    "metadata": ({"k": 1}, lambda row: row["metadata"].get("k"), 1),
    "on_success": (REPORT, lambda row: row["followers"]["on_success"], [REPORT]),
    "on_failure": (REPORT, lambda row: row["followers"]["on_failure"], [REPORT]),
    "on_complete": (REPORT, lambda row: row["followers"]["on_complete"], [REPORT]),
}


NUMBERS = count()  # so that no unique job is a duplicate of another


def row_of(id: UUID) -> Row:
    (row,) = QueuedJob.objects.filter(pk=id).values()
    return row


def alone(**options: Any) -> UUID:
    return jobs.add.using(**options).enqueue(1).id


def unique(**options: Any) -> UUID:
    return jobs.add_alone.using(**options).enqueue(next(NUMBERS)).id


def two() -> list[dict[str, int]]:
    return [{"a": next(NUMBERS)}, {"a": next(NUMBERS)}]


WAYS: dict[str, Callable[..., UUID]] = {
    "alone": alone,
    "the second of a burst, whose type is known": lambda **o: (alone(**o), alone(**o))[
        1
    ],
    "with an id": lambda **o: jobs.add.using(id=uuid4(), **o).enqueue(1).id,
    "by name": lambda **o: enqueue(jobs.add.name, {"a": 1}, **o).id,
    "many": lambda **o: jobs.add.using(**o).enqueue_many(two())[1],
    "unique": unique,
    "many unique": lambda **o: jobs.add_alone.using(**o).enqueue_many(two())[1],
    "replacing": lambda **o: jobs.render.using(**o).enqueue(next(NUMBERS)).id,
    "in a window": lambda **o: jobs.remind.using(**o).enqueue(next(NUMBERS)).id,
}


@pytest.fixture
def declare(own: OwnConnection, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Writes the rows of the schedules of a test; there are no others."""
    # private: no others than those of the test
    monkeypatch.setattr(schedules, "_by_name", {})
    Schedule.objects.all().delete()

    def write() -> None:
        job_types.declare(own, registry)
        schedule_rows.declare(own)

    return write


OF_SCHEDULES: dict[str, tuple[Any, str]] = {  # a value, and its column
    "name": ("chosen", "name"),
    "missed": ("skip", "missed"),
    "missed_within": (MINUTE, "missed_within"),
    "missed_most": (7, "missed_most"),
    "overlap": ("skip", "overlap"),
    "jitter": (MINUTE, "jitter"),
    "starts": (LATER, "starts_at"),
    "ends": (LATER, "ends_at"),
}


def lost(option: str, row: Row) -> str:
    """Says that the option is not in the row, if it is not."""
    _given, read, expected = SAMPLES[option]
    is_there = read(row) == expected
    return "" if is_there else f"{option} is lost on its way into the row: {row}"


def returns_a_duplicate() -> bool:
    returned = jobs.add_alone.using(on_duplicate="return")
    return returned.enqueue(-1).id == returned.enqueue(-1).id


def is_debounced() -> bool:
    row = row_of(unique(debounce=MINUTE))
    return bool(row["run_after"] - row["created_at"] > MINUTE / 2)


def is_debounced_at_most() -> bool:
    """The wait of the second call would end later than the longest wait of the job."""
    longest = jobs.add_alone.using(debounce=MINUTE, debounce_max=MINUTE)
    longest.enqueue(-2)
    row = row_of(longest.enqueue(-2).id)
    return bool(row["run_after"] <= row["created_at"] + MINUTE)


def is_in_that_database() -> bool:
    with pytest.raises(InvalidArguments, match="nowhere"):
        alone(using="nowhere")
    return row_of(alone(using="default"))["status"] == "queued"


# Options that are no value of the row, or only together with others.
def written(handler: Any, *arguments: Any, **options: Any) -> Row:
    return row_of(handler.using(**options).enqueue(*arguments).id)


NULL = "/dev/null"
KEY = f"{jobs.write_keyed.name} k"
ID = uuid4()
EFFECTS: dict[str, Callable[[], bool]] = {
    "id": lambda: alone(id=ID) == ID,
    "limit_key": lambda: (
        written(jobs.write_keyed, NULL, limit_key="k")["limit_key"] == KEY
    ),
    "weight": lambda: written(jobs.write_weighed, NULL, weight=7)["weight"] == 7,
    "unique_key": lambda: row_of(alone(unique_key="k"))["unique_key"] is not None,
    "unique_until": lambda: row_of(unique(unique_until="started"))[
        "unique_until_started"
    ],
    "on_duplicate": returns_a_duplicate,
    "debounce": is_debounced,
    "debounce_max": is_debounced_at_most,
    "using": is_in_that_database,
}


def test_each_option_of_one_job_is_tried_and_has_its_effect() -> None:
    untried = OF_JOB.keys() - SAMPLES.keys() - EFFECTS.keys()
    assert untried == set(), "add a value of each to SAMPLES, with its column"
    assert SAMPLES.keys() | EFFECTS.keys() == OF_JOB.keys()
    assert [option for option, effect in EFFECTS.items() if not effect()] == []


def test_each_option_is_in_the_row_whichever_way_it_is_inserted() -> None:
    ids = {
        (name, option): way(**{option: given})
        for name, way in WAYS.items()
        for option, (given, _, _) in SAMPLES.items()
    }
    rows = {row["id"]: row for row in QueuedJob.objects.values()}
    found = [(way, lost(option, rows[id])) for (way, option), id in ids.items()]
    assert [one for one in found if one[1]] == []


def test_a_lifetime_ends_at_the_last_moment_that_a_job_may_have() -> None:
    """Whichever way the job is inserted, and also if it is replaced after it."""
    end = {"run_after": LAST, "expires_in": timedelta(36_500)}
    found = {name: row_of(way(**end))["expires_at"] for name, way in WAYS.items()}
    replacing = jobs.render.using(expires_in=timedelta(36_500))
    jobs.render.using(run_after=LAST).enqueue(-1)
    found["replaced"] = row_of(replacing.enqueue(-1).id)["expires_at"]
    found["many replaced"] = row_of(replacing.enqueue_many([{"document": -1}])[0])[
        "expires_at"
    ]
    with override_settings(JOBQUEUE={"MODE": "immediate"}):
        found["at once"] = jobs.add.using(**end).enqueue(1).expires_at
    memory.clear()
    assert found == dict.fromkeys(found, LAST)


def test_a_moment_that_is_past_means_now() -> None:
    """Or a caller would say how long its job has waited, and go before others."""
    began, past = timezone.now(), {"run_after": READABLE[0]}
    ids = [way(**past) for way in WAYS.values()]
    follower = jobs.without_arguments.using(**past)
    cancel([first := jobs.add.using(on_complete=follower).enqueue(1).id])
    ids += [replay(first, **past).id, QueuedJob.objects.get(follows=first).id]
    reschedule([later := alone(run_after=LATER)], **past)
    due = [row_of(id)["run_after"] for id in (*ids, later)]
    with override_settings(JOBQUEUE={"MODE": "immediate"}):
        due.append(jobs.add.using(**past).enqueue(1).run_after)
    memory.clear()
    assert [moment for moment in due if moment < began] == []


def test_each_option_is_in_the_row_that_a_schedule_makes(
    own: OwnConnection, declare: Callable[[], None]
) -> None:
    names = sorted(SAMPLES.keys() - NOT_OF_SCHEDULES.keys())
    for name in names:
        jobs.add.using(**{name: SAMPLES[name][0]}).at(every(days=1_000), name=name)(1)
    declare()
    fire(own, due_schedules.due(own, names))  # plans them
    Schedule.objects.update(next_at=timezone.now())
    assert len(fire(own, due_schedules.due(own, names)).jobs) == len(names)
    rows = {row["metadata"]["schedule"]: row for row in QueuedJob.objects.values()}
    assert list(filter(None, (lost(name, rows[name]) for name in names))) == []


def test_each_option_of_a_schedule_is_in_its_row(declare: Callable[[], None]) -> None:
    assert OF_SCHEDULES.keys() == ScheduleOptions.__annotations__.keys(), (
        "add a value and column of each"
    )
    for option, (given, _) in OF_SCHEDULES.items():
        jobs.add.at(every(days=1_000), **{"name": option, option: given})(1)
    declare()
    rows = {row["name"]: row for row in Schedule.objects.values()}
    rows["name"] = rows["chosen"]
    found = {
        option: rows[option][column] for option, (_, column) in OF_SCHEDULES.items()
    }
    assert found == {option: given for option, (given, _) in OF_SCHEDULES.items()}
