"""Releasing running jobs in the admin: only from workers that are gone."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.models import ArchivedJob, Failure, QueuedJob
from django_jobqueue.stats.why_not_running import why_not_one
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.pages import get, list_of, page_of, verb_of
from tests.admin.scene import ONCE, Scene
from tests.admin.units import act, buttons, question, shown
from tests.commands.conftest import jobqueue
from tests.store.rows import ADD, ago, make


def release(client: Client, *ids: object) -> str:
    return act(client, "queuedjob", "release", *ids)


def test_a_job_of_a_lost_worker_waits_again(
    anna: Client, scene: Scene, operated: list[dict[str, Any]]
) -> None:
    for which in ("lapsed", "unclaimed"):
        id = scene.queued[which]
        assert "release" in buttons(anna, "queuedjob", id)
        said = question(anna, "queuedjob", "release", id)
        assert "Its worker counts as dead." in said
        assert release(anna, id) == "1 job waits again."
        job = QueuedJob.objects.get(pk=id)
        found = (job.status, job.worker_id, job.attempts, job.crashes)
        assert found == ("queued", None, 0, 1)
        failure = Failure.objects.get(job_id=id)
        assert failure.reason == "its worker is gone; released by anna"
        assert LogEntry.objects.latest("pk").object_id == str(id)
    assert [(one["verb"], one["count"]) for one in operated] == [("release", 1)] * 2


def test_a_job_of_a_living_worker_and_one_that_waits_are_left_alone(
    anna: Client, scene: Scene
) -> None:
    id = scene.queued["running"]
    said = question(anna, "queuedjob", "release", id)
    assert "its worker is alive" in said
    assert "Cancel it instead" in said
    told = release(anna, id)
    assert "1 is left alone: it does not run, or its worker is alive" in told
    assert "changed meanwhile" not in told
    assert QueuedJob.objects.get(pk=id).status == "running"
    waits = scene.queued["ready"]
    assert "release" not in buttons(anna, "queuedjob", waits)
    release(anna, waits)
    assert QueuedJob.objects.get(pk=waits).crashes == 0
    assert not LogEntry.objects.exists()
    # Of many, only the lost ones are taken.
    told = release(anna, *scene.queued.values())
    assert "2 jobs wait again." in told
    assert "7 are left alone: they do not run, or their workers" in told


def test_a_job_of_an_endpoint_or_a_move_is_not_lost_though_it_renews_no_lease(
    anna: Client, scene: Scene
) -> None:
    for state in ("endpoint", "moving"):
        holder = rows.worker(f"shop-{state}", state=state, lease_until=ago(60))
        id = make(ADD, status="running", worker_id=holder, started_at=ago(60))
        listed = get(anna, list_of("queuedjob"), q=str(id)).text
        assert f"running on shop-{state}" in listed
        assert str(id) not in shown(anna, "queuedjob", q="state:lapsed")
        assert why_not_one(QueuedJob.objects.get(pk=id)) == []
        said = question(anna, "queuedjob", "release", id)
        if state == "moving":
            assert "its worker is alive" in said
            assert operations.release([id]) == []
            with pytest.raises(CommandError, match="only one whose worker is gone"):
                jobqueue("release", str(id))
            assert QueuedJob.objects.get(pk=id).status == "running"
        else:  # whoever names it may take it back: the endpoint may never call back
            assert "Its worker counts as dead." in said
            jobqueue("release", str(id))
            assert QueuedJob.objects.get(pk=id).status == "queued"


def test_a_job_that_may_run_once_only_is_archived_and_that_is_said_before(
    anna: Client, scene: Scene
) -> None:
    runs = {"status": "running", "attempts": 1, "started_at": timezone.now()}
    id = rows.queued(ONCE, worker_id=scene.workers["lost"], **runs)
    said = question(anna, "queuedjob", "release", id)
    assert "it is archived as failed, because nobody knows how far it came" in said
    assert release(anna, id) == "1 job was archived."
    job = ArchivedJob.objects.get(pk=id)
    assert job.status == "failed"
    assert job.error_message.startswith("outcome unknown: its worker is gone")
    assert "Released from a lost worker." in get(anna, page_of("archivedjob", id)).text


def test_releasing_needs_its_right(log_in: LogIn, scene: Scene) -> None:
    sent = {"keys": str(scene.queued["lapsed"]), "confirmed": "1"}
    address = verb_of("queuedjob", "release")
    client = log_in("view_queuedjob", "cancel_queuedjob", "reschedule_queuedjob")
    assert client.post(address, sent).status_code == 403
    client = log_in("view_queuedjob", "release_queuedjob", name="carl")
    assert client.post(address, sent).status_code == 302
    assert QueuedJob.objects.get(pk=scene.queued["lapsed"]).status == "queued"
