"""``jobqueue limits``."""

from __future__ import annotations

import getpass
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobqueue.models import (
    AuditEntry,
    Bucket,
    JobType,
    KeyLimit,
    KeyOverride,
    QueuedJob,
)
from django_jobqueue.text.redaction import MASK
from tests.admin.scene import worker
from tests.commands.conftest import jobqueue, not_refused
from tests.store.rows import ADD, KEYED, make

pytestmark = pytest.mark.django_db


def keyed(key: str, **columns: object) -> None:
    make(KEYED, data={}, limit_key=f"{KEYED} {key}", **columns)


def test_the_list_says_what_holds_and_how_many_run() -> None:
    KeyLimit.objects.exclude(pk=KEYED).delete()
    keyed("a", status="running", worker_id=worker())
    keyed("a")
    lines = [line.split() for line in jobqueue("limits").out.splitlines()]
    assert lines[1] == [KEYED, "2", "-", "-", "1", KEYED]
    (one,) = jobqueue("limits --format json").json
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


def test_keys_of_a_sensitive_argument_are_masked() -> None:
    keyed("alice-example")
    assert "alice-example" in jobqueue(f"limits show {KEYED}").out
    JobType.objects.filter(pk=KEYED).update(sensitive=["key"])
    for form in ("text", "json"):
        out = jobqueue(f"limits show {KEYED} --format {form}").out
        assert "alice-example" not in out
        assert MASK in out


def test_the_keys_of_a_limit_are_shown_those_that_wait_longest_first() -> None:
    now = timezone.now()
    keyed("a", status="running", worker_id=worker())
    keyed("b", run_after=now - timedelta(minutes=1))
    keyed("b", run_after=now + timedelta(hours=1), queue="other")
    keyed("c", run_after=now - timedelta(minutes=2))
    make(ADD, limit_key="other c")
    KeyOverride.objects.create(limit_key=f"{KEYED} d", concurrency=0)
    KeyOverride.objects.create(limit_key=f"{KEYED}! d", concurrency=0)

    lines = jobqueue(f"limits show {KEYED}").out.splitlines()
    assert [line.split()[:5] for line in lines[1:]] == [
        ["c", "0", "2", "-", "1"],
        ["b", "0", "2", "-", "2"],
        ["a", "1", "2", "-", "0"],
        ["d", "0", "0", "0", "0"],
    ]
    shown = jobqueue(f"limits show {KEYED} --format json").json
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
    assert jobqueue(f"limits show {KEYED}").out == "No key has jobs or an override.\n"


def test_a_limit_and_a_key_are_overridden_and_the_audit_says_by_whom() -> None:
    for line, said in (
        ("5", "code → 5"),
        ("0 --key 7", "code → 0"),
        ("0 --key 7", "nothing changed"),
        ("--rate 10/s", "code → 10/1s burst 1"),
        ("--rate 10/1s", "nothing changed"),
    ):
        about = f"{KEYED}, key 7" if "key" in line else KEYED
        out = jobqueue(f"limits override {KEYED} {line}").out
        assert out == f"{about}: {said}.\n"
    row = KeyLimit.objects.get(pk=KEYED)
    assert (row.concurrency_override, row.rate_override) == (5, "10/1s burst 1")
    assert KeyOverride.objects.get().limit_key == f"{KEYED} 7"
    assert "10/1s burst 1" in jobqueue("limits").out
    change = jobqueue(f"limits override {KEYED} unlimited --format json")
    assert change.json == {"before": 5, "after": -1}
    jobqueue(f"limits override {KEYED} --rate code")
    jobqueue(f"limits override {KEYED} code --key 7")
    assert KeyLimit.objects.get(pk=KEYED).rate_override is None
    assert not KeyOverride.objects.exists()
    first, of_key = AuditEntry.objects.order_by("id")[:2]
    assert (first.verb, first.about) == ("override limit", [KEYED])
    assert first.by == f"command line ({getpass.getuser()})"
    assert first.details == {"concurrency": "– → 5"}
    assert of_key.details == {"key": "7", "concurrency": "– → 0"}
    assert AuditEntry.objects.count() == 6


def test_what_makes_no_sense_is_refused() -> None:
    reasons = {
        "show": "Name one limit to show",
        "show tests.sample.write_keye": f"Did you mean '{KEYED}'",
        "override nothing 2": "There is no limit by key",
        f"list {KEYED}": "list takes no name",
        f"show {KEYED} --key 7": "--key goes with override",
    }
    of_override = {
        "": "Name one limit, and a number",
        "many": "must be a whole number, code or",
        "-2": "at least -1",
        f"2 --key {'k' * 151}": "150 characters",
        "--rate often": "must be a rate, such as",
        "--share 3": "--share belongs to one key: give --key, too",
        "--share 0 --key 7": "share must be a whole number of at least 1",
        "--share 1001 --key 7": "share must be at most 1,000",
        "--share unlimited --key 7": "must be a whole number, code, not",
        "--share 3 --rate 1/s --key 7": "Name one limit, and a",
        "3 --rate 1/s": "Name one limit, and a number",
    }
    reasons |= {f"override {KEYED} {line}": why for line, why in of_override.items()}
    assert not_refused("limits", reasons) == {}
    assert not KeyLimit.objects.exclude(concurrency_override=None).exists()
    assert not KeyOverride.objects.exists()


def test_the_rate_and_the_share_of_one_key_are_overridden() -> None:
    of_key, rate = f"limits override {KEYED} --key 7", "10/1s burst 1"
    said = jobqueue(f"{of_key} --rate 10/s").out
    assert said == f"{KEYED}, key 7: code → {rate}.\n"
    assert jobqueue(f"{of_key} --share 3").out == f"{KEYED}, key 7: code → 3.\n"
    full_at = timezone.now() + timedelta(seconds=60)
    Bucket.objects.create(limit_key=f"{KEYED} 7", full_at=full_at)

    (key,) = jobqueue(f"limits show {KEYED} --format json").json
    assert (key["rate"], key["rate_override"], key["share"]) == (rate, rate, 3)
    assert 50 < key["next_start"] <= 60
    assert (key["override"], key["limit"]) == (None, 2)
    heads, row = jobqueue(f"limits show {KEYED}").out.splitlines()
    assert heads.split("  ")[-1].strip() == "Share"
    assert re.fullmatch(f".*  {rate}  +in (1 m|59 s) +3", row.strip())

    for change in ("0", "--rate code", "--share code"):
        jobqueue(f"{of_key} {change}")
    assert KeyOverride.objects.get().concurrency == 0
    jobqueue(f"{of_key} code")
    assert not KeyOverride.objects.exists()


def test_it_says_where_the_order_is_strict_and_when_the_retry_is_due() -> None:
    KeyLimit.objects.filter(pk=KEYED).update(concurrency=1, strict=True)
    keyed("a", fence=1, run_after=timezone.now() + timedelta(hours=2))
    keyed("a")
    keyed("b")
    assert f"{KEYED} 1, strict" in " ".join(jobqueue("limits").out.split())
    listed = jobqueue(f"limits show {KEYED} --format json").json
    rows = {row["key"]: row for row in listed}
    assert 7_190 < rows["a"]["next_start"] <= 7_200
    assert rows["b"]["next_start"] == 0
    shown = jobqueue(f"limits show {KEYED}").out
    assert "Next start" in shown
    assert "in 2 h" in shown

    reasons = dict.fromkeys(
        ("2", "unlimited", "3 --key a"), "jobs of a key run one after the other"
    )
    reasons["--share 2 --key a"] = "a share changes nothing"
    assert not_refused(f"limits override {KEYED}", reasons) == {}
    jobqueue(f"limits override {KEYED} 0 --key a")
    assert KeyOverride.objects.get().concurrency == 0
