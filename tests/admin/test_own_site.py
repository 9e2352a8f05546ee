"""The pages on another admin site, and with a page that a project changed."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.admin import scene as rows
from tests.admin.pages import MODELS, confirm, get, list_of, page_of
from tests.admin.scene import Scene
from tests.store.rows import KEYED

pytestmark = pytest.mark.urls("tests.admin.ops_urls")


@pytest.mark.parametrize("model", MODELS)
def test_every_page_is_there_and_links_stay_on_the_site(
    anna: Client, scene: Scene, model: str
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
    for address in (list_of(model), page_of(model, keys[model])):
        page = get(anna, address)
        assert address.startswith("/ops/jobqueue/")
        assert not [link for link in page.links if link.startswith("/admin/")]


def test_a_verb_is_done_there(anna: Client, scene: Scene) -> None:
    page = confirm(anna, "archivedjob", "replay", scene.archived["failed"])
    assert "1 job was replayed." in page.text


def test_a_project_changes_a_page_by_a_subclass(anna: Client, db: None) -> None:
    for _ in range(110):
        rows.archived()
    assert len(get(anna, list_of("archivedjob")).rows) == 100
