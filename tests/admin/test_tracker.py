"""The link to the tracker: what it says, and what it does not."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest
from django.core.checks import run_checks
from django.test import Client

from django_jobqueue.models import ArchivedJob, FailureGroup, JobType
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.hostile import HOSTILE
from tests.admin.pages import get, page_of
from tests.admin.scene import Scene

NEW = (
    "https://tracker.example/issues/new?title={title}&body={body}&type={job_type}"
    "&print={fingerprint}&url={url}&count={count}&first={first}&last={last}"
)
LABEL = "Report in tracker"


@pytest.fixture(autouse=True)
def tracker(settings: Any) -> None:
    """The project has one."""
    settings.JOBQUEUE = {"TRACKER_URL": NEW}


def reported(client: Client, model: str, key: object) -> dict[str, str]:
    """The fields of the link on this page."""
    links = get(client, page_of(model, key)).links
    (link,) = [one for one in links if one.startswith("https://tracker.example/")]
    return {name: value for name, [value] in parse_qs(urlsplit(link).query).items()}


def failed(scene: Scene) -> ArchivedJob:
    """The failed job of the scene, which is of its group."""
    job = ArchivedJob.objects.get(pk=scene.archived["failed"])
    assert job.fingerprint == UUID(str(scene.group))
    return job


def test_a_group_is_reported_with_what_a_stranger_needs(
    anna: Client, scene: Scene
) -> None:
    group = FailureGroup.objects.get(pk=scene.group)
    found = reported(anna, "failuregroup", scene.group)
    page = f"http://testserver{page_of('failuregroup', scene.group)}"
    short = group.error_class.rpartition(".")[2]
    assert found["title"].startswith(f"{short}: {group.template}"[:40])
    assert found["type"] == failed(scene).job_type_id
    assert (found["print"], found["url"]) == (str(scene.group), page)
    assert int(found["count"].rstrip("+")) >= 1
    assert found["first"].endswith("UTC")
    assert found["last"].endswith("UTC")
    lines = found["body"].splitlines()
    assert lines[0].startswith(group.error_class)
    assert f"Failures: {found['count']}" in lines
    assert lines[-1] == page


def test_a_job_is_reported_as_one_of_its_group(anna: Client, scene: Scene) -> None:
    job = failed(scene)
    ArchivedJob.objects.filter(pk=job.pk).update(error_message="order 4711 is lost")
    found = reported(anna, "archivedjob", job.pk)
    assert found["title"].endswith(": order 4711 is lost")
    assert found["type"] == job.job_type_id
    assert found["url"].endswith(f"/queuedjob/find/{job.pk}/")
    assert found["print"] == str(scene.group)


LONG = ("x" * 5_000, "ß\x1b🎈" * 900)


@pytest.mark.parametrize("text", [*HOSTILE, "a\r\nb&title=c#d", *LONG])
def test_a_hostile_message_stays_in_its_field(
    anna: Client, scene: Scene, text: str
) -> None:
    job = failed(scene)
    FailureGroup.objects.update(template=text, frame=text[:300])
    ArchivedJob.objects.filter(pk=job.pk).update(error_message=text[:500])
    for model, key in (("failuregroup", scene.group), ("archivedjob", job.pk)):
        found = reported(anna, model, key)
        assert set(found) == set(parse_qs(urlsplit(NEW).query))
        assert len(found["title"]) <= 150
        assert "\n" not in found["title"]
        assert "\x1b" not in found["body"]
        (link,) = [
            one
            for one in get(anna, page_of(model, key)).links
            if one.startswith("https://tracker.example/")
        ]
        assert len(link) < 12_000


def test_secrets_stay_masked(anna: Client, scene: Scene) -> None:
    job = failed(scene)
    JobType.objects.filter(pk=job.job_type_id).update(sensitive=["iban_of"])
    ArchivedJob.objects.filter(pk=job.pk).update(
        data={"iban_of": "DE0012345"},
        error_message="DE0012345 password=hunter2 is refused",
    )
    FailureGroup.objects.update(template="password=hunter2 is refused")
    for model, key in (("failuregroup", scene.group), ("archivedjob", job.pk)):
        found = reported(anna, model, key)
        assert "hunter2" not in str(found)
        assert "DE0012345" not in str(found)
        assert "is refused" in found["title"]


def test_only_who_sees_groups_is_offered_it_on_a_job(
    log_in: LogIn, scene: Scene
) -> None:
    rights = [right for right in VIEWS if right != "view_failuregroup"]
    page = get(log_in(*rights), page_of("archivedjob", scene.archived["failed"]))
    assert LABEL not in page.text


def test_a_job_that_did_not_fail_is_not_reported(anna: Client, scene: Scene) -> None:
    page = get(anna, page_of("archivedjob", scene.archived["succeeded"]))
    assert LABEL not in page.text


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"TRACKER_URL": None},
        {"TRACKER_URL": "javascript:alert('{title}')"},
        {"TRACKER_URL": "https://tracker.example/{nothing}"},
    ],
)
def test_without_a_usable_address_there_is_no_link(
    anna: Client, scene: Scene, settings: Any, given: dict[str, Any]
) -> None:
    settings.JOBQUEUE = given
    for model, key in (
        ("failuregroup", scene.group),
        ("archivedjob", scene.archived["failed"]),
    ):
        assert LABEL not in get(anna, page_of(model, key)).text


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TRACKER_URL", "ftp://tracker.example/", "must be an address with http://"),
        ("TRACKER_URL", "https://a.example/{who}", "has the field 'who'"),
        ("TRACKER_URL", 7, "must be an address with fields in braces, not 7"),
        ("TRACKER_URL", f"https://a.example/{'x' * 2_000}", "at most 2000 characters"),
        ("TRACKER_ISSUE_URL", "https://a.example/", "must have the field {id}"),
        ("TRACKER_ISSUE_PATTERN", "(", "must be a regular expression, not '('"),
        ("TRACKER_ISSUE_PATTERN", "", "must be a regular expression, not ''"),
    ],
)
def test_a_check_says_what_is_wrong(
    settings: Any, name: str, value: object, said: str
) -> None:
    settings.JOBQUEUE = {name: value}
    (message,) = run_checks(tags=["jobqueue"])
    assert message.id == "jobqueue.E003"
    assert said in message.msg
