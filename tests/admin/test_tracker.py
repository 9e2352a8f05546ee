"""The link to the tracker: what it says, and what it does not."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.checks import run_checks
from django.test import Client
from django.utils.html import escape

from django_jobqueue.models import ArchivedJob, FailureGroup, JobType
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.hostile import HOSTILE
from tests.admin.pages import Page, get, page_of
from tests.admin.scene import Scene
from tests.admin.units import context

NEW = (
    "https://tracker.example/issues/new?title={title}&body={body}&type={job_type}"
    "&print={fingerprint}&url={url}&count={count}&first={first}&last={last}"
)
LABEL = "Report in tracker"


@pytest.fixture(autouse=True)
def tracker(settings: Any) -> None:
    settings.JOBQUEUE = {"TRACKER_URL": NEW}


def fields(link: str) -> dict[str, str]:
    """The fields of this link, which are those of the address."""
    found = parse_qs(urlsplit(link).query)
    assert set(found) == set(parse_qs(urlsplit(NEW).query))
    return {name: value for name, [value] in found.items()}


def link_of_group(client: Client, scene: Scene) -> str:
    return str(context(client, "failuregroup", scene.group)["page"].tracker)


def link_of_job(client: Client, scene: Scene) -> str:
    summary = context(client, "archivedjob", scene.archived["failed"])["page"].summary
    links = Page("".join(str(value) for _name, value in summary)).links
    return "".join(one for one in links if one.startswith("https://tracker.example/"))


def test_a_group_and_a_job_are_reported_with_what_a_stranger_needs(
    anna: Client, log_in: LogIn, scene: Scene
) -> None:
    group = FailureGroup.objects.get(pk=scene.group)
    job = ArchivedJob.objects.get(pk=scene.archived["failed"])
    link = link_of_group(anna, scene)
    assert escape(link) in get(anna, page_of("failuregroup", group.pk)).html
    found = fields(link)
    page = f"http://testserver{page_of('failuregroup', scene.group)}"
    short = group.error_class.rpartition(".")[2]
    assert found["title"].startswith(f"{short}: {group.template}"[:40])
    assert found["type"] == job.job_type_id
    assert (found["print"], found["url"]) == (str(scene.group), page)
    assert int(found["count"].rstrip("+")) >= 1
    assert found["first"].endswith("UTC")
    assert found["last"].endswith("UTC")
    lines = found["body"].splitlines()
    assert lines[0].startswith(group.error_class)
    assert f"Failures: {found['count']}" in lines
    assert lines[-1] == page
    # A job is reported as one of its group,
    ArchivedJob.objects.filter(pk=job.pk).update(error_message="order 4711 is lost")
    link = link_of_job(anna, scene)
    address = page_of("archivedjob", job.pk)
    assert link in get(anna, address).links
    found = fields(link)
    assert found["title"].endswith(": order 4711 is lost")
    assert found["type"] == job.job_type_id
    assert found["url"].endswith(f"/queuedjob/find/{job.pk}/")
    assert found["print"] == str(scene.group)
    # to those who see groups; one that did not fail is not.
    rights = [right for right in VIEWS if right != "view_failuregroup"]
    assert LABEL not in get(log_in(*rights), address).text
    over = page_of("archivedjob", scene.archived["succeeded"])
    assert LABEL not in get(anna, over).text


def test_a_hostile_message_stays_in_its_field(anna: Client, scene: Scene) -> None:
    long = ("x" * 5_000, "ß\x1b🎈" * 900)
    for text in (*HOSTILE, "a\r\nb&title=c#d", *long):
        FailureGroup.objects.update(template=text, frame=text[:300])
        ArchivedJob.objects.filter(status="failed").update(error_message=text[:500])
        for link in (link_of_group(anna, scene), link_of_job(anna, scene)):
            assert len(link) < 12_000
            found = fields(link)
            assert len(found["title"]) <= 150
            assert "\n" not in found["title"]
            assert "\x1b" not in found["body"]


def test_secrets_stay_masked(anna: Client, scene: Scene) -> None:
    job = ArchivedJob.objects.get(pk=scene.archived["failed"])
    JobType.objects.filter(pk=job.job_type_id).update(sensitive=["iban_of"])
    ArchivedJob.objects.filter(pk=job.pk).update(
        data={"iban_of": "DE0012345"},
        error_message="DE0012345 password=hunter2 is refused",
    )
    FailureGroup.objects.update(template="password=hunter2 is refused")
    for link in (link_of_group(anna, scene), link_of_job(anna, scene)):
        found = fields(link)
        assert "hunter2" not in str(found)
        assert "DE0012345" not in str(found)
        assert "is refused" in found["title"]


def test_without_a_usable_address_there_is_no_link(
    anna: Client, scene: Scene, settings: Any
) -> None:
    for given in (
        {},
        {"TRACKER_URL": None},
        {"TRACKER_URL": "javascript:alert('{title}')"},
        {"TRACKER_URL": "https://tracker.example/{nothing}"},
    ):
        settings.JOBQUEUE = given
        assert link_of_group(anna, scene) == link_of_job(anna, scene) == "", given
    assert LABEL not in get(anna, page_of("failuregroup", scene.group)).text


def test_a_check_says_what_is_wrong(settings: Any) -> None:
    value: object
    for name, value, said in (
        ("TRACKER_URL", "ftp://tracker.example/", "must be an address with http://"),
        ("TRACKER_URL", "https://a.example/{who}", "has the field 'who'"),
        ("TRACKER_URL", 7, "must be an address with fields in braces, not 7"),
        ("TRACKER_URL", f"https://a.example/{'x' * 2_000}", "at most 2000 characters"),
        ("TRACKER_ISSUE_URL", "https://a.example/", "must have the field {id}"),
        ("TRACKER_ISSUE_PATTERN", "(", "must be a regular expression, not '('"),
        ("TRACKER_ISSUE_PATTERN", "", "must be a regular expression, not ''"),
    ):
        settings.JOBQUEUE = {name: value}
        (message,) = run_checks(tags=["jobqueue"])
        assert message.id == "jobqueue.E003"
        assert said in message.msg
