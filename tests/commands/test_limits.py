"""``jobqueue limits``."""

from __future__ import annotations

import getpass
import re
from datetime import timedelta

import pytest
from django.core.management.base import CommandError
from django.utils import timezone

from django_jobqueue.models import (
    AuditEntry,
    Bucket,
    JobType,
    KeyLimit,
    KeyOverride,
    QueuedJob,
)
from tests.admin.scene import worker
from tests.commands.conftest import jobqueue
from tests.store.rows import ADD, KEYED, make

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker_id() -> int:
    """Of a worker that is alive."""
    return worker()


def keyed(key: str, **columns: object) -> None:
    """A job of this key."""
    make(KEYED, data={}, limit_key=f"{KEYED} {key}", **columns)


def test_the_list_says_what_holds_and_how_many_run(worker_id: int) -> None:
    KeyLimit.objects.exclude(pk=KEYED).delete()
    keyed("a", status="running", worker_id=worker_id)
    keyed("a")
    lines = [line.split() for line in jobqueue("limits").out.splitlines()]
    assert lines[1] == [KEYED, "2", "-", "-", "1", KEYED]
    (one,) = jobqueue("limits", "--format", "json").json
    assert one == {
        "name": KEYED,
        "concurrency": 2,
        "override": None,
        "limit": 2,
        "running": 1,
        "overridden_keys": 0,
        "rate": None,
        "rate_override": None,
        "strict": False,
        "job_types": [KEYED],
    }
    JobType.objects.update(limit_name=None)
    KeyLimit.objects.all().delete()
    assert jobqueue("limits").out == "No job type has a limit by key.\n"


def test_the_keys_of_a_limit_are_shown_those_that_wait_longest_first(
    worker_id: int,
) -> None:
    now = timezone.now()
    keyed("a", status="running", worker_id=worker_id)
    keyed("b", run_after=now - timedelta(minutes=1))
    keyed("b", run_after=now + timedelta(hours=1), queue="other")
    keyed("c", run_after=now - timedelta(minutes=2))
    make(ADD, limit_key="other c")
    KeyOverride.objects.create(limit_key=f"{KEYED} d", concurrency=0)
    KeyOverride.objects.create(limit_key=f"{KEYED}! d", concurrency=0)

    lines = jobqueue("limits", "show", KEYED).out.splitlines()
    assert [line.split()[:5] for line in lines[1:]] == [
        ["c", "0", "2", "-", "1"],
        ["b", "0", "2", "-", "2"],
        ["a", "1", "2", "-", "0"],
        ["d", "0", "0", "0", "0"],
    ]
    shown = jobqueue("limits", "show", KEYED, "--format", "json").json
    assert shown[2] == {
        "key": "a",
        "running": 1,
        "limit": 2,
        "override": None,
        "rate": None,
        "rate_override": None,
        "share": None,
        "waiting": 0,
        "oldest": None,
        "next_start": 0.0,
    }
    QueuedJob.objects.all().delete()
    KeyOverride.objects.all().delete()
    assert jobqueue("limits", "show", KEYED).out == "No key has jobs or an override.\n"


def test_a_limit_and_a_key_are_overridden_and_the_audit_says_by_whom() -> None:
    said = jobqueue("limits", "override", KEYED, "5").out
    assert said == f"{KEYED}: code → 5.\n"
    assert KeyLimit.objects.get(pk=KEYED).concurrency_override == 5
    said = jobqueue("limits", "override", KEYED, "0", "--key", "7").out
    assert said == f"{KEYED}, key 7: code → 0.\n"
    assert KeyOverride.objects.get().limit_key == f"{KEYED} 7"
    again = jobqueue("limits", "override", KEYED, "0", "--key", "7").out
    assert again == f"{KEYED}, key 7: nothing changed.\n"
    change = jobqueue("limits", "override", KEYED, "unlimited", "--format", "json")
    assert change.json == {"before": 5, "after": -1}
    jobqueue("limits", "override", KEYED, "code", "--key", "7")
    assert not KeyOverride.objects.exists()

    first, of_key = AuditEntry.objects.order_by("id")[:2]
    assert (first.verb, first.about) == ("override limit", [KEYED])
    assert first.by == f"command line ({getpass.getuser()})"
    assert first.details == {"concurrency": "– → 5"}
    assert of_key.details == {"key": "7", "concurrency": "– → 0"}
    assert AuditEntry.objects.count() == 4


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("show",), "Name one limit to show"),
        (("show", "tests.sample.write_keye"), f"Did you mean '{KEYED}'"),
        (("override", KEYED), "Name one limit, and the number"),
        (("override", KEYED, "many"), "must be a whole number, code or"),
        (("override", KEYED, "-2"), "at least -1"),
        (("override", "nothing", "2"), "There is no limit by key"),
        (("override", KEYED, "2", "--key", "k" * 151), "150 characters"),
        (("list", KEYED), "list takes no name"),
        (("show", KEYED, "--key", "7"), "--key goes with override"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], text: str) -> None:
    with pytest.raises(CommandError, match=text):
        jobqueue("limits", *arguments)
    assert not KeyLimit.objects.exclude(concurrency_override=None).exists()


def test_the_rate_of_each_key_is_overridden() -> None:
    said = jobqueue("limits", "override", KEYED, "--rate", "10/s").out
    assert said == f"{KEYED}: code → 10/1s burst 1.\n"
    shown = jobqueue("limits", "--format", "json").json
    (limit,) = (one for one in shown if one["name"] == KEYED)
    assert (limit["rate"], limit["rate_override"]) == (None, "10/1s burst 1")
    assert "10/1s burst 1" in jobqueue("limits").out
    again = jobqueue("limits", "override", KEYED, "--rate", "10/1s").out
    assert again == f"{KEYED}: nothing changed.\n"
    jobqueue("limits", "override", KEYED, "--rate", "code")
    assert KeyLimit.objects.get(pk=KEYED).rate_override is None
    with pytest.raises(CommandError, match="must be a rate, such as"):
        jobqueue("limits", "override", KEYED, "--rate", "often")


def test_the_rate_and_the_share_of_one_key_are_overridden() -> None:
    of_key = ("limits", "override", KEYED, "--key", "7")
    said = jobqueue(*of_key, "--rate", "10/s").out
    assert said == f"{KEYED}, key 7: code → 10/1s burst 1.\n"
    assert jobqueue(*of_key, "--share", "3").out == f"{KEYED}, key 7: code → 3.\n"
    Bucket.objects.create(
        limit_key=f"{KEYED} 7", full_at=timezone.now() + timedelta(seconds=60)
    )

    (key,) = jobqueue("limits", "show", KEYED, "--format", "json").json
    assert (key["rate"], key["rate_override"], key["share"]) == (
        "10/1s burst 1",
        "10/1s burst 1",
        3,
    )
    assert 50 < key["next_start"] <= 60
    assert (key["override"], key["limit"]) == (None, 2)
    heads, row = jobqueue("limits", "show", KEYED).out.splitlines()
    assert heads.split("  ")[-1].strip() == "Share"
    assert re.split(r"\s{2,}", row.strip())[-3:] in (
        ["10/1s burst 1", "in 1 m", "3"],
        ["10/1s burst 1", "in 59 s", "3"],
    )

    jobqueue(*of_key, "0")
    jobqueue(*of_key, "--rate", "code")
    jobqueue(*of_key, "--share", "code")
    assert KeyOverride.objects.get().concurrency == 0
    jobqueue(*of_key, "code")
    assert not KeyOverride.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--share", "3"), "--share is of one key: give --key as well"),
        (("--share", "0", "--key", "7"), "share must be a whole number of at least 1"),
        (("--share", "1001", "--key", "7"), "share must be at most 1,000"),
        (("--share", "unlimited", "--key", "7"), "must be a whole number, code, not"),
        (("--share", "3", "--rate", "1/s", "--key", "7"), "Name one limit, and the"),
        (("3", "--rate", "1/s"), "Name one limit, and the number"),
        ((), "Name one limit, and the number"),
    ],
)
def test_an_override_that_makes_no_sense_is_refused(
    arguments: tuple[str, ...], text: str
) -> None:
    with pytest.raises(CommandError, match=text):
        jobqueue("limits", "override", KEYED, *arguments)
    assert not KeyOverride.objects.exists()


def test_it_says_where_the_order_is_strict_and_when_the_retry_is_due() -> None:
    KeyLimit.objects.filter(pk=KEYED).update(concurrency=1, strict=True)
    keyed("a", fence=1, run_after=timezone.now() + timedelta(hours=2))
    keyed("a")
    keyed("b")
    assert f"{KEYED} 1, strict" in " ".join(jobqueue("limits").out.split())
    listed = jobqueue("limits", "show", KEYED, "--format", "json").json
    rows = {row["key"]: row for row in listed}
    assert 7_190 < rows["a"]["next_start"] <= 7_200
    assert rows["b"]["next_start"] == 0
    shown = jobqueue("limits", "show", KEYED).out
    assert "Next start" in shown
    assert "in 2 h" in shown

    for words in (["2"], ["unlimited"], ["3", "--key", "a"]):
        with pytest.raises(CommandError, match="jobs of a key run one after the other"):
            jobqueue("limits", "override", KEYED, *words)
    with pytest.raises(CommandError, match="a share changes nothing"):
        jobqueue("limits", "override", KEYED, "--share", "2", "--key", "a")
    jobqueue("limits", "override", KEYED, "0", "--key", "a")
    assert KeyOverride.objects.get().concurrency == 0
