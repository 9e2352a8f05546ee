"""Unique keys in the admin: until when they are held, and freeing them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from django_jobqueue.domain.ids import new_id
from django_jobqueue.models import QueuedJob, UniqueWindow
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.pages import confirm, get, page_of, select, verb_of
from tests.admin.scene import Scene
from tests.sample import jobs


def window(job_id: Any, seconds: float | None) -> UniqueWindow:
    """A window of this job, open for so many seconds; None is forever."""
    until = None if seconds is None else timezone.now() + timedelta(seconds=seconds)
    return UniqueWindow.objects.create(key=new_id(), job_id=job_id, held_until=until)


@pytest.mark.parametrize("seconds", [3_600, None])
@pytest.mark.parametrize("model", ["queuedjob", "archivedjob"])
def test_the_page_of_a_job_says_until_when_it_holds_its_key(
    anna: Client, scene: Scene, model: str, seconds: float | None
) -> None:
    ids = scene.queued if model == "queuedjob" else scene.archived
    id = next(iter(ids.values()))
    held = window(id, seconds)

    page = get(anna, page_of(model, id))

    assert str(held.key) in page.text
    assert ("Key held until forever" in page.text) is (seconds is None)
    assert ("(in 59 m" in page.text or "(in 1 h" in page.text) is (seconds == 3_600)
    assert [link for link in page.links if verb_of(model, "free_key") in link]


def test_the_page_of_a_job_without_a_key_does_not_mention_it(
    anna: Client, scene: Scene
) -> None:
    id = next(iter(scene.archived.values()))
    window(id, -1)
    page = get(anna, page_of("archivedjob", id))
    assert "Unique key" not in page.text
    assert verb_of("archivedjob", "free_key") not in page.html


@pytest.mark.parametrize("held_by", ["window", "queue"])
def test_a_freed_key_lets_a_duplicate_through(
    anna: Client, scene: Scene, operated: list[dict[str, Any]], held_by: str
) -> None:
    handler = jobs.remind if held_by == "window" else jobs.index
    first = handler.enqueue(1)
    asked = select(anna, "queuedjob", "free_key", first.id)
    assert "Free the unique key of 1 job?" in asked.text
    assert "makes another job, which may run beside this one." in asked.text
    assert not handler.enqueue(1).is_new

    page = confirm(anna, "queuedjob", "free_key", first.id)

    assert "1 unique key was freed." in page.text
    assert handler.enqueue(1).is_new
    assert "Unique key freed." in get(anna, page_of("queuedjob", first.id)).text
    assert LogEntry.objects.get().object_id == str(first.id)
    assert [(one["verb"], one["count"]) for one in operated] == [("free key", 1)]


def test_a_key_that_was_freed_meanwhile_is_no_error(anna: Client, scene: Scene) -> None:
    id = rows.queued(unique_key=new_id())
    QueuedJob.objects.filter(pk=id).update(unique_key=None)
    page = confirm(anna, "queuedjob", "free_key", id)
    assert "1 was skipped: it changed meanwhile." in page.text


def test_freeing_needs_its_permission(scene: Scene, log_in: LogIn) -> None:
    id = rows.queued(unique_key=new_id())
    sent = {"keys": str(id), "confirmed": "1"}
    client = log_in("view_queuedjob", "reschedule_queuedjob")
    assert (
        verb_of("queuedjob", "free_key")
        not in get(client, page_of("queuedjob", id)).html
    )
    assert client.post(verb_of("queuedjob", "free_key"), sent).status_code == 403
    assert QueuedJob.objects.get(pk=id).unique_key is not None
