"""The pages in another language."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from django_jobqueue.models import BulkOperation
from tests.admin.pages import MODELS, get, list_of, page_of, verb_of
from tests.admin.scene import Scene


@pytest.fixture(autouse=True)
def german() -> Iterator[None]:
    """Everything is said in German."""
    with translation.override("de"):
        yield


def test_the_overview(anna: Client, scene: Scene) -> None:
    text = get(anna, reverse("admin:app_list", args=["jobqueue"])).text
    assert "Braucht Aufmerksamkeit" in text
    assert "Letzte 24 Stunden" in text


@pytest.mark.parametrize("model", MODELS)
def test_lists(anna: Client, scene: Scene, model: str) -> None:
    text = get(anna, list_of(model)).text
    assert "Übersicht" in text
    assert "Overview" not in text


def test_the_page_of_a_job(anna: Client, scene: Scene) -> None:
    for id in scene.archived.values():
        assert "Verlauf" in get(anna, page_of("archivedjob", id)).text
    for id in scene.queued.values():
        assert "Verlauf" in get(anna, page_of("queuedjob", id)).text


def test_a_question(anna: Client, scene: Scene) -> None:
    page = get(anna, verb_of("archivedjob", "replay"), keys=scene.archived["failed"])
    assert "1 Job wiederholen?" in page.text


def test_the_name_of_a_bulk_operation(db: None) -> None:
    operation = BulkOperation(kind="replay")
    assert str(operation) == f"wiederholen {operation.pk}"
