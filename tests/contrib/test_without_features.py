"""Pages of the core where no feature is installed."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from django_jobqueue.exceptions import Fail
from django_jobqueue.jobs import bulk
from tests.admin.conftest import anna
from tests.admin.pages import get, list_of
from tests.contrib.test_rooms import leave_out_features
from tests.workers.chunk_jobs import context_of

__all__ = ["anna"]  # a fixture


def test_lists_and_the_search_do_without_features(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, search = list_of("archivedjob"), reverse("admin:jobqueue_search")
    lists = f"{archive}?status=failed", f"{search}?q=anna"
    assert all("Save this view" in get(anna, one).text for one in lists)
    assert "find this value in all tables" in get(anna, lists[1]).text
    leave_out_features(monkeypatch)
    assert not any("Save this view" in get(anna, one).text for one in lists)
    assert "find this value in all tables" not in get(anna, lists[1]).text


def test_a_job_of_a_feature_that_is_gone_fails_at_once_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leave_out_features(monkeypatch)
    with pytest.raises(Fail, match="named 'erasure'"):
        bulk(context_of(None), erasure=str(UUID(int=1)))
