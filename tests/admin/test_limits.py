"""The pages of limits by key: their keys, and overrides."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from django_jobqueue.models import AuditEntry, Bucket, JobType, KeyLimit, KeyOverride
from tests.admin.conftest import LogIn
from tests.admin.pages import get, list_of, page_of
from tests.admin.scene import Scene
from tests.admin.units import act, problems
from tests.store.rows import KEYED, make

PAGE_RIGHTS = ("view_keylimit", "view_job_data", "change_keylimit")
FORM = "/admin/jobqueue/keylimit/override/"
ONLY = {"only_key": "on", "key": "acme"}


def keyed(key: str, **columns: object) -> None:
    make(KEYED, data={}, limit_key=f"{KEYED} {key}", **columns)


def override(client: Client, **said: Any) -> str:
    return act(client, "keylimit", "override", KEYED, **said)


def limit() -> KeyLimit:
    return KeyLimit.objects.get(pk=KEYED)


def test_the_list_and_the_page_say_what_holds_and_which_keys_have_jobs(
    anna: Client, log_in: LogIn, scene: Scene
) -> None:
    keyed("acme", status="running", worker_id=scene.workers["running"])
    keyed("acme")
    keyed("zen")
    KeyOverride.objects.create(limit_key=f"{KEYED} zen", concurrency=0)
    KeyLimit.objects.filter(pk=KEYED).update(concurrency_override=-1)
    listed = get(anna, list_of("keylimit")).text
    assert f"{KEYED} ∞ 2 → ∞ 1 of its keys 1" in listed
    page = get(anna, page_of("keylimit", KEYED)).text
    assert "acme 1 ∞ – 1 " in page
    assert "zen 0 held 0 1 " in page
    # Keys are data, so not everybody sees them.
    viewer = get(log_in("view_keylimit", name="viewer"), page_of("keylimit", KEYED))
    assert "acme" not in viewer.html
    JobType.objects.filter(pk=KEYED).update(sensitive=["key"])
    engineer = get(log_in(*PAGE_RIGHTS), page_of("keylimit", KEYED))
    assert "acme" not in engineer.html


def test_an_engineer_overrides_a_limit_and_holds_a_key(log_in: LogIn) -> None:
    client = log_in(*PAGE_RIGHTS)
    keyed("acme")
    asked = get(client, FORM, keys=KEYED, key="acme")
    assert f"Override the limit {KEYED}?" in asked.text
    assert 'value="acme"' in asked.html
    assert "Running jobs per key, now: 2; in code: 2." in asked.text
    override(client, concurrency="5")
    assert limit().concurrency_override == 5
    override(client, concurrency="0", **ONLY)
    assert KeyOverride.objects.get().concurrency == 0
    assert "Nothing changed." in override(client, concurrency="0", **ONLY)
    override(client, concurrency="", **ONLY)
    assert not KeyOverride.objects.exists()
    entries = [one.get_change_message() for one in LogEntry.objects.order_by("id")]
    assert entries == ["– → 5", "One key: – → 0", "One key: 0 → –"]
    assert AuditEntry.objects.count() == 3
    assert "One key: – → 0" in get(client, page_of("keylimit", KEYED)).text


def test_an_engineer_overrides_rates_and_shares(log_in: LogIn) -> None:
    client = log_in(*PAGE_RIGHTS)
    override(client, concurrency="7", rate="10/s")
    assert limit().rate_override == "10/1s burst 1"
    page = get(client, page_of("keylimit", KEYED)).text
    assert "Rate of each key 10/1s burst 1" in page
    asked = get(client, FORM, keys=KEYED)  # begins with what is in force
    assert 'value="10/1s burst 1"' in asked.html
    assert 'value="7"' in asked.html
    override(client, concurrency="1", **ONLY)
    assert limit().rate_override == "10/1s burst 1"
    override(client, concurrency="", rate="")
    assert (limit().rate_override, limit().concurrency_override) == (None, None)
    # Those of one key:
    keyed("acme")
    override(client, concurrency="", rate="10/m", share="3", **ONLY)
    one = KeyOverride.objects.get()
    assert (one.concurrency, one.rate, one.share) == (None, "10/60s burst 1", 3)
    full = timezone.now() + timedelta(seconds=125)
    Bucket.objects.create(limit_key=one.limit_key, full_at=full)
    page = get(client, page_of("keylimit", KEYED)).text
    assert "acme 0 2 – 10/60s burst 1 3 1 " in page
    assert "in 2 m" in page
    assert "One key: – → 10/60s burst 1, 1 → –, – → 3" in page
    asked = get(client, FORM, keys=KEYED, key="acme")
    assert 'value="10/60s burst 1"' in asked.html
    assert 'value="3"' in asked.html
    wrong = problems(client, "keylimit", "override", KEYED, rate="", share="2")
    assert "A share belongs to one key: name it." in wrong


def test_a_strict_order_is_shown_and_no_override_breaks_it(log_in: LogIn) -> None:
    client = log_in(*PAGE_RIGHTS)
    KeyLimit.objects.filter(pk=KEYED).update(concurrency=1, strict=True)
    keyed("acme", fence=1, run_after=timezone.now() + timedelta(hours=2))
    keyed("acme")
    page = get(client, page_of("keylimit", KEYED)).text
    assert "Order of each key strict: a retry goes first" in page
    assert "in 2 h" in page
    told = override(client, concurrency="2")
    assert "jobs of a key run one after the other" in told
    assert limit().concurrency_override is None
