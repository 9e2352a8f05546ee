"""The draft that replays the failed jobs of a failure group, and what came of it."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from django_jobqueue import operations
from django_jobqueue.models import AuditEntry, BulkOperation, FailureGroup, JobType
from tests.admin.conftest import LogIn
from tests.admin.pages import Page, get, page_of
from tests.admin.scene import ADD, FAIL, archived
from tests.admin.units import press

pytestmark = pytest.mark.django_db

REPLAYS = (
    *("view_failuregroup", "view_bulkoperation", "view_archivedjob", "view_jobtype"),
    *("start_bulkoperation", "replay_archivedjob"),
)
RESUME = f"Resume {ADD}"
WHY = "the bank is closed"


@pytest.fixture
def group() -> UUID:
    key = uuid4()
    FailureGroup.objects.create(
        fingerprint=key, coarse=key, error_class="builtins.OSError", frame="shop:pay"
    )
    JobType.objects.filter(name=ADD).update(summary="sum of {a}")
    for number in (11, 12):
        archived(ADD, "failed", fingerprint=key, data={"a": number})
    return key


def newest() -> BulkOperation:
    return BulkOperation.objects.latest("created_at")


def drafted(client: Client, group: UUID) -> Page:
    press(client, page_of("failuregroup", group).replace("/change/", "/replay-jobs/"))
    return get(client, page_of("bulkoperation", newest().pk))


def start(client: Client, **said: str) -> str:
    address = page_of("bulkoperation", newest().pk).replace("/change/", "/start/")
    return press(client, address, shown="2", skip_replayed="any", **said)


def is_paused(name: str = ADD) -> bool:
    return JobType.objects.get(name=name).paused


def test_a_paused_type_is_resumed_with_the_replay_if_that_is_chosen(
    anna: Client, log_in: LogIn, group: UUID
) -> None:
    operations.pause([ADD, FAIL], reason=WHY, by="carl")
    page = drafted(anna, group)
    assert RESUME in page.text
    assert f"Resume {FAIL}" not in page.text  # of other jobs
    start(anna)
    assert (newest().state, is_paused()) == ("queued", True)
    # Nobody resumes what they may not.
    client = log_in(*REPLAYS)
    page = drafted(client, group)
    assert "Paused, so that the new jobs will wait" in page.text
    assert RESUME not in page.text
    start(client, resume="on")
    assert (newest().state, is_paused()) == ("queued", True)

    drafted(anna, group)
    start(anna, resume="on")
    assert (newest().state, is_paused(), is_paused(FAIL)) == ("queued", False, True)
    acts = AuditEntry.objects.values_list("verb", "by", "about")
    assert ("resume", "anna", [ADD]) in list(acts)
    assert LogEntry.objects.filter(object_id=ADD).exists()
    # What is started twice resumes nothing.
    operations.pause([ADD], reason=WHY, by="carl")
    assert "started or discarded already" in start(anna, resume="on")
    assert is_paused()


def test_draft_and_operation_name_the_group_and_what_its_jobs_are_about(
    anna: Client, log_in: LogIn, group: UUID
) -> None:
    text = drafted(anna, group).text
    assert "Filter: failure group: builtins.OSError in shop:pay" in text
    assert "sum of 11" in text
    assert "sum of 12" in text
    assert "sum of" not in drafted(log_in(*REPLAYS), group).text
    start(anna)
    address = page_of("bulkoperation", newest().pk)
    assert page_of("failuregroup", group) in get(anna, address).links
    blind = log_in("view_bulkoperation", "view_archivedjob", name="blind")
    assert page_of("failuregroup", group) not in get(blind, address).links
