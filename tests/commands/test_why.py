"""``jobqueue why``: what the admin says, and what to do."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from django.core.management import load_command_class
from django.db import transaction

from django_jobqueue import operations
from django_jobqueue.models import QueuedJob, Worker
from django_jobqueue.stats.why_not_running import why_not_one
from tests.admin import scene
from tests.admin.scene import Scene, build
from tests.commands.conftest import jobqueue, parser, refusal

pytestmark = pytest.mark.django_db


def understood(remedy: str) -> bool:
    name, *words = shlex.split(remedy)
    words = ["7" if word == "N" else word for word in words]
    if name == "jobqueue":
        return bool(parser().parse_args(words))
    command = load_command_class("django_jobqueue", name)
    return bool(command.create_parser("manage.py", name).parse_args(words))


def prepare(rows: Scene, case: str) -> Any:
    match case:
        case "no worker":
            Worker.objects.all().delete()
        case "draining":
            Worker.objects.exclude(state="draining").delete()
        case "other queue":
            Worker.objects.filter(queues__isnull=True).delete()
            return scene.queued(queue="slow; rm")
        case "paused queue":
            return scene.queued(queue="mail")
        case "other type":
            return scene.queued("tests.sample.write")
        case "limit":
            operations.override(scene.ADD, concurrency=1)
        case "busy":
            Worker.objects.update(running=200)
        case "ahead":
            Worker.objects.update(running=200)
            return scene.queued()
    return rows.queued.get(case, rows.queued["ready"])


CASES = {
    "no worker": ("no worker is alive", "runworkers"),
    "draining": ("take no new jobs", "jobqueue workers resume web-1:2"),
    "other queue": ("no living worker", "runworkers --queues 'slow; rm'"),
    "paused queue": ("carl paused its queue", "jobqueue resume mail --queue"),
    "paused": ("carl paused its job type: leaks", "jobqueue resume {type}"),
    "other type": ("no running worker handles", "jobqueue types show {type}"),
    "later": ("it is not due for another", "jobqueue run-now {id}"),
    "limit": ("at its limit: 4 of 1 run", "jobqueue override {type} --concurr"),
    "busy": ("it waits for a free slot", "jobqueue hosts scale --all"),
    "ahead": (" ahead of it in line", "jobqueue reschedule {id} --priority 1"),
    "lapsed": ("its worker is gone", "jobqueue release {id}"),
    "cancelling": ("asked to stop", "jobqueue workers stacks web-1:1"),
    "expiring": ("it has expired", ""),
}


def test_each_reason_comes_with_a_command_that_is_understood() -> None:
    rows = build()
    for case, (text, remedy) in CASES.items():
        with transaction.atomic():
            id = prepare(rows, case)
            job = QueuedJob.objects.get(pk=id)
            reasons = jobqueue(f"why {id} --format json").json["reasons"]
            shown = jobqueue(f"why {id}").out
            assert [one["text"] for one in reasons] == why_not_one(job)
            transaction.set_rollback(True)
        (one, *_) = [one for one in reasons if text in one["text"]]
        assert one["remedy"].startswith(remedy.format(id=id, type=job.job_type_id))
        assert all(understood(each["remedy"]) for each in reasons if each["remedy"])
        assert f"- {one['text']}\n" in shown
        assert one["remedy"] in shown


def test_a_job_that_runs_or_has_finished_is_said_to() -> None:
    rows = build()
    runs = jobqueue(f"why {rows.queued['running']}")
    assert " runs on web-1:1 since " in runs.out
    over = jobqueue(f"why {rows.archived['failed']}")
    assert "has finished: failed at" in over.out
    assert f"manage.py jobqueue replay {rows.archived['failed']}" in over.out
    said = jobqueue(f"why {rows.archived['succeeded']} --format json").json
    assert (said["over"], said["reasons"]) == (True, [])
    assert refusal("why abcdef").startswith("There is no job")
