"""Queues: those in use, with or without a row; who serves them; their pauses."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from django_jobqueue.models import JobType, Queue, Worker
from tests.admin.conftest import LogIn
from tests.admin.pages import get, list_of, page_of, select
from tests.admin.scene import ADD, Scene, queued, worker
from tests.admin.test_job_types import happened, row_of
from tests.admin.units import act, listing

NOBODY = "no living worker serves it"


def test_queues_in_use_are_listed_with_and_without_a_row(
    anna: Client, scene: Scene
) -> None:
    now, minutes = timezone.now(), timedelta(minutes=7)
    queued(queue="parcels", run_after=now - minutes)
    queued(queue="parcels", run_after=now + minutes)
    happened(timedelta(hours=2), queue="parcels", succeeded=75, failed=25)
    worker("web-4:1", queues=["faxes"])
    page = get(anna, list_of("queue"))
    declared = set(JobType.objects.values_list("queue", flat=True))
    named = {*declared, "default", "faxes", "images", "mail", "parcels"}
    assert page.rows == sorted(named)
    assert f"{len(named)} queues" in page.text
    assert Queue.objects.count() == 2
    said = row_of(page, "parcels")
    assert said.startswith("active 1 7 m 1 0 100 25.0 % failed only draining workers –")

    def served() -> str:
        rows = listing(anna, "queue").result_list
        (row,) = (row for row in rows if row.name == "parcels")
        return str(row.row_context.served)

    Worker.objects.update(queues=["default"])
    assert NOBODY in served()
    worker("web-4:1", queues=None, release="r8")
    assert "1 worker" in served()
    assert "r8" in served()


def test_the_page_of_a_queue_without_a_row(
    anna: Client, log_in: LogIn, db: None
) -> None:
    queued(queue="parcels", run_after=timezone.now() - timedelta(minutes=7))
    happened(timedelta(hours=2), "shop.removed", queue="parcels", succeeded=3)
    worker("web-4:1", queues=["parcels"])
    page = get(anna, page_of("queue", "parcels"))
    assert f"shop.removed 0 – 0 0 3 0 % failed {ADD} 1 7 m 0 0 –" in page.text
    assert "Workers that serve it web-4:1" in page.text
    assert "Pauses Nothing yet." in page.text
    assert page_of("jobtype", ADD) in page.links
    assert page_of("jobtype", "shop.removed") not in page.links
    assert f"{list_of('queuedjob')}?queue=parcels" in page.links
    # Whoever may see only queues is shown no links.
    page = get(log_in("view_queue"), page_of("queue", "parcels"))
    there = ("jobtype", "worker", "queuedjob", "archivedjob")
    assert not [link for link in page.links if any(f"/{one}/" in link for one in there)]


def test_a_queue_without_a_row_is_paused_and_resumed(
    anna: Client, scene: Scene
) -> None:
    queued(queue="parcels")
    page = select(anna, "queue", "pause", "parcels", "images")
    assert "Pause these 2: " in page.text
    act(anna, "queue", "pause", "parcels", reason="strike")
    assert Queue.objects.get(name="parcels").paused_reason == "strike"
    said = row_of(get(anna, list_of("queue")), "parcels")
    assert said.startswith("paused 1 ")
    assert "strike anna" in said

    # One that nobody knows has no page and no pause.
    told = act(anna, "queue", "pause", "nowhere", reason="x")
    assert told == "The selected rows no longer exist."
    assert anna.get(page_of("queue", "nowhere")).status_code == 302
    assert not Queue.objects.filter(name="nowhere").exists()

    act(anna, "queue", "resume", "parcels")
    text = get(anna, page_of("queue", "parcels")).text
    assert "anna Resumed." in text
    assert "anna Paused: strike" in text
    assert LogEntry.objects.count() == 2
