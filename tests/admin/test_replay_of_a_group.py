"""The draft that replays the failed jobs of a failure group, and what came of it."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from django_jobqueue import operations
from django_jobqueue.models import AuditEntry, BulkOperation, FailureGroup, JobType
from tests.admin.conftest import LogIn
from tests.admin.pages import Page, get, page_of, post
from tests.admin.scene import ADD, FAIL, archived

pytestmark = pytest.mark.django_db

REPLAYS = (
    *("view_failuregroup", "view_bulkoperation", "view_archivedjob", "view_jobtype"),
    *("start_bulkoperation", "replay_archivedjob"),
)
RESUME = f"Resume {ADD}"


@pytest.fixture
def group() -> UUID:
    """A failure group with two failed jobs."""
    key = uuid4()
    FailureGroup.objects.create(
        fingerprint=key, coarse=key, error_class="builtins.OSError", frame="shop:pay"
    )
    JobType.objects.filter(name=ADD).update(summary="sum of {a}")
    for number in (11, 12):
        archived(ADD, "failed", fingerprint=key, data={"a": number})
    return key


def drafted(client: Client, group: UUID) -> Page:
    """The draft that the button of the group makes."""
    address = page_of("failuregroup", group).replace("/change/", "/replay-jobs/")
    return post(client, address, {})


def start(client: Client, **said: str) -> Page:
    """Press the button of the newest draft."""
    id = BulkOperation.objects.latest("created_at").pk
    address = page_of("bulkoperation", id).replace("/change/", "/start/")
    return post(client, address, {"shown": "2", "skip_replayed": "any", **said})


def test_a_paused_type_is_resumed_with_the_replay(anna: Client, group: UUID) -> None:
    operations.pause([ADD], reason="the bank is closed", by="carl")
    page = drafted(anna, group)
    assert RESUME in page.text
    start(anna, resume="on")
    assert not JobType.objects.get(name=ADD).paused
    assert BulkOperation.objects.get().state == "queued"
    newest = AuditEntry.objects.order_by("-id").values_list("verb", "by", "about")
    assert ("resume", "anna", [ADD]) in list(newest)
    assert LogEntry.objects.filter(object_id=ADD).exists()


def test_it_stays_paused_unless_that_is_chosen(anna: Client, group: UUID) -> None:
    operations.pause([ADD], reason="the bank is closed", by="carl")
    drafted(anna, group)
    start(anna)
    assert BulkOperation.objects.get().state == "queued"
    assert JobType.objects.get(name=ADD).paused


def test_nobody_resumes_what_they_may_not(log_in: LogIn, group: UUID) -> None:
    operations.pause([ADD], reason="the bank is closed", by="carl")
    client = log_in(*REPLAYS)
    page = drafted(client, group)
    assert "Paused, so that the new jobs will wait" in page.text
    assert RESUME not in page.text
    start(client, resume="on")
    assert BulkOperation.objects.get().state == "queued"
    assert JobType.objects.get(name=ADD).paused


def test_types_of_other_jobs_are_not_resumed(anna: Client, group: UUID) -> None:
    operations.pause([FAIL], reason="the bank is closed", by="carl")
    assert "Resume " not in drafted(anna, group).text
    start(anna, resume="on")
    assert JobType.objects.get(name=FAIL).paused


def test_what_is_started_twice_resumes_nothing(anna: Client, group: UUID) -> None:
    drafted(anna, group)
    start(anna)
    operations.pause([ADD], reason="the bank is closed again", by="carl")
    assert "started or discarded already" in start(anna, resume="on").text
    assert JobType.objects.get(name=ADD).paused


def test_the_draft_says_what_its_examples_are_about(
    anna: Client, log_in: LogIn, group: UUID
) -> None:
    text = drafted(anna, group).text
    assert "sum of 11" in text
    assert "sum of 12" in text
    assert "sum of" not in drafted(log_in(*REPLAYS), group).text


def test_draft_and_operation_name_the_failure_group(
    anna: Client, log_in: LogIn, group: UUID
) -> None:
    assert (
        "Filter: failure group: builtins.OSError in shop:pay"
        in drafted(anna, group).text
    )
    start(anna)
    address = page_of("bulkoperation", BulkOperation.objects.get().pk)
    assert page_of("failuregroup", group) in get(anna, address).links
    blind = log_in("view_bulkoperation", "view_archivedjob")
    assert page_of("failuregroup", group) not in get(blind, address).links
