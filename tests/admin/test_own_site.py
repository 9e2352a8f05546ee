"""The pages on another admin site, and with a page that a project changed."""

from __future__ import annotations

import pytest
from django.test import Client

from django_jobqueue.models import ArchivedJob
from tests.admin import scene as rows
from tests.admin.pages import MODELS, get, list_of, page_of
from tests.admin.scene import Scene, archived_row, insert_all
from tests.admin.units import act
from tests.store.rows import KEYED

pytestmark = pytest.mark.urls("tests.admin.ops_urls")


def test_every_page_is_there_and_links_stay_on_the_site(
    anna: Client, scene: Scene
) -> None:
    keys = {
        "archivedjob": scene.archived["failed"],
        "failuregroup": scene.group,
        "jobtype": rows.ADD,
        "schedule": scene.schedules["code"],
        "keylimit": KEYED,
        "host": scene.hosts["asked"],
        "lease": scene.leases["held"],
        "queue": "mail",
        "queuedjob": scene.queued["running"],
        "token": scene.tokens["billing"],
        "worker": scene.workers["running"],
    }
    for model in MODELS:
        for address in (list_of(model), page_of(model, keys[model])):
            page = get(anna, address)
            assert address.startswith("/ops/jobqueue/")
            assert not [link for link in page.links if link.startswith("/admin/")]
    told = act(anna, "archivedjob", "replay", scene.archived["failed"])
    assert "1 job was replayed." in told


def test_a_project_changes_a_page_by_a_subclass(anna: Client, db: None) -> None:
    insert_all(ArchivedJob, [archived_row() for _ in range(110)])
    assert len(get(anna, list_of("archivedjob")).rows) == 100
