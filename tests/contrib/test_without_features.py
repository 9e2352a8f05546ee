"""Pages of the core where no feature is installed."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from tests.admin.conftest import anna
from tests.admin.pages import get, list_of
from tests.contrib.test_rooms import leave_out_features

__all__ = ["anna"]  # a fixture


def test_lists_and_the_search_do_without_features(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, search = list_of("archivedjob"), reverse("admin:jobqueue_search")
    assert "Save this view" in get(anna, f"{archive}?status=failed").text
    leave_out_features(monkeypatch)
    for address in (f"{archive}?status=failed", f"{search}?q=status:failed"):
        assert "Save this view" not in get(anna, address).text
