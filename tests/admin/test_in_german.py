"""The pages in another language."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from django_jobqueue.models import BulkOperation
from tests.admin.pages import MODELS, get, list_of, page_of
from tests.admin.scene import Scene
from tests.admin.units import question


@pytest.fixture(autouse=True)
def german() -> Iterator[None]:
    with translation.override("de"):
        yield


def test_pages_are_in_german(anna: Client, scene: Scene) -> None:
    text = get(anna, reverse("admin:app_list", args=["jobqueue"])).text
    assert "Braucht Aufmerksamkeit" in text
    assert "Letzte 24 Stunden" in text
    for model in MODELS:
        text = get(anna, list_of(model)).text
        assert "Übersicht" in text, model
        assert "Overview" not in text, model
    for model, id in (
        ("archivedjob", scene.archived["failed"]),
        ("queuedjob", scene.queued["running"]),
    ):
        assert "Verlauf" in get(anna, page_of(model, id)).text
    asked = question(anna, "archivedjob", "replay", scene.archived["failed"])
    assert "1 Job wiederholen?" in asked
    operation = BulkOperation(kind="replay")
    assert str(operation) == f"wiederholen {operation.pk}"
