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
from tests.admin.pages import confirm, get, list_of, page_of, select, verb_of
from tests.admin.scene import ONCE, Scene
from tests.commands.conftest import jobqueue
from tests.store.rows import ADD, ago, make


@pytest.mark.parametrize("which", ["lapsed", "unclaimed"])
def test_a_job_of_a_lost_worker_waits_again(
    anna: Client, scene: Scene, which: str, operated: list[dict[str, Any]]
) -> None:
    id = scene.queued[which]
    page = get(anna, page_of("queuedjob", id))
    assert [link for link in page.links if verb_of("queuedjob", "release") in link]
    assert "Its worker counts as dead." in select(anna, "queuedjob", "release", id).text
    page = confirm(anna, "queuedjob", "release", id)
    assert "1 job waits again." in page.text
    job = QueuedJob.objects.get(pk=id)
    assert (job.status, job.worker_id, job.attempts, job.crashes) == (
        "queued",
        None,
        0,
        1,
    )
    failure = Failure.objects.get(job_id=id)
    assert failure.reason == "its worker is gone; released by anna"
    assert LogEntry.objects.get().object_id == str(id)
    assert [(one["verb"], one["count"]) for one in operated] == [("release", 1)]


def test_a_job_of_a_living_worker_is_left_alone(anna: Client, scene: Scene) -> None:
    id = scene.queued["running"]
    page = select(anna, "queuedjob", "release", id)
    assert "its worker is alive" in page.text
    assert "Cancel it instead" in page.text
    page = confirm(anna, "queuedjob", "release", id)
    assert "1 is left alone: it does not run, or its worker is alive" in page.text
    assert "changed meanwhile" not in page.text
    assert QueuedJob.objects.get(pk=id).status == "running"
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("state", ["endpoint", "moving"])
def test_a_job_of_an_endpoint_or_a_move_is_not_lost_though_it_renews_no_lease(
    anna: Client, scene: Scene, state: str
) -> None:
    holder = rows.worker("shop", state=state, lease_until=ago(60))
    id = make(ADD, status="running", worker_id=holder, started_at=ago(60))
    assert "running on shop" in get(anna, list_of("queuedjob"), q=str(id)).text
    assert str(id) not in get(anna, list_of("queuedjob"), q="state:lapsed").html
    assert why_not_one(QueuedJob.objects.get(pk=id)) == []
    said = select(anna, "queuedjob", "release", id).text
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


def test_a_waiting_job_is_left_alone(anna: Client, scene: Scene) -> None:
    id = scene.queued["ready"]
    page = get(anna, page_of("queuedjob", id))
    assert verb_of("queuedjob", "release") not in page.html
    confirm(anna, "queuedjob", "release", id)
    assert QueuedJob.objects.get(pk=id).crashes == 0


def test_a_job_that_may_run_once_only_is_archived_and_that_is_said_before(
    anna: Client, scene: Scene
) -> None:
    id = rows.queued(
        ONCE,
        status="running",
        attempts=1,
        started_at=timezone.now(),
        worker_id=scene.workers["lost"],
    )
    page = select(anna, "queuedjob", "release", id)
    assert "it is archived as failed, because nobody knows how far it came" in page.text
    page = confirm(anna, "queuedjob", "release", id)
    assert "1 job was archived." in page.text
    job = ArchivedJob.objects.get(pk=id)
    assert job.status == "failed"
    assert job.error_message.startswith("outcome unknown: its worker is gone")
    assert "Released from a lost worker." in get(anna, page_of("archivedjob", id)).text


def test_of_many_only_the_lost_ones_are_taken(anna: Client, scene: Scene) -> None:
    page = confirm(anna, "queuedjob", "release", *scene.queued.values())
    assert "2 jobs wait again." in page.text
    assert "7 are left alone: they do not run, or their workers" in page.text
    assert "changed meanwhile" not in page.text


def test_releasing_needs_its_right(log_in: LogIn, scene: Scene) -> None:
    id = scene.queued["lapsed"]
    client = log_in("view_queuedjob", "cancel_queuedjob", "reschedule_queuedjob")
    sent = {"keys": str(id), "confirmed": "1"}
    assert client.post(verb_of("queuedjob", "release"), sent).status_code == 403
    assert QueuedJob.objects.get(pk=id).status == "running"
    client = log_in("view_queuedjob", "release_queuedjob", name="carl")
    assert client.post(verb_of("queuedjob", "release"), sent).status_code == 302
    assert QueuedJob.objects.get(pk=id).status == "queued"
