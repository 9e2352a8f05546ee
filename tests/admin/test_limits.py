"""The pages of limits by key: their keys, and overrides."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from django_jobqueue.models import (
    AuditEntry,
    Bucket,
    JobType,
    KeyLimit,
    KeyOverride,
)
from tests.admin.conftest import LogIn
from tests.admin.pages import confirm, get, list_of, page_of
from tests.admin.scene import Scene
from tests.store.rows import KEYED, make

PAGE_RIGHTS = ("view_keylimit", "view_job_data", "change_keylimit")


def keyed(key: str, **columns: object) -> None:
    """A job of this key."""
    make(KEYED, data={}, limit_key=f"{KEYED} {key}", **columns)


def test_the_list_and_the_page_say_what_holds_and_which_keys_have_jobs(
    anna: Client, scene: Scene
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


def test_an_engineer_overrides_a_limit_and_holds_a_key(
    log_in: LogIn, scene: Scene
) -> None:
    client = log_in(*PAGE_RIGHTS)
    keyed("acme")
    asked = get(client, "/admin/jobqueue/keylimit/override/", keys=KEYED, key="acme")
    assert f"Override the limit {KEYED}?" in asked.text
    assert 'value="acme"' in asked.html
    assert "Running jobs per key, now: 2; in code: 2." in asked.text

    confirm(client, "keylimit", "override", KEYED, concurrency="5")
    assert KeyLimit.objects.get(pk=KEYED).concurrency_override == 5
    only = {"only_key": "on", "key": "acme"}
    confirm(client, "keylimit", "override", KEYED, concurrency="0", **only)
    assert KeyOverride.objects.get().concurrency == 0
    again = confirm(client, "keylimit", "override", KEYED, concurrency="0", **only)
    assert "Nothing changed." in again.text
    confirm(client, "keylimit", "override", KEYED, concurrency="", **only)
    assert not KeyOverride.objects.exists()

    entries = [one.get_change_message() for one in LogEntry.objects.order_by("id")]
    assert entries == ["– → 5", "Key acme: – → 0", "Key acme: 0 → –"]
    assert AuditEntry.objects.count() == 3
    assert "Key acme: – → 0" in get(client, page_of("keylimit", KEYED)).text


def test_keys_are_data_so_not_everybody_sees_them(log_in: LogIn, scene: Scene) -> None:
    keyed("acme")
    viewer = get(log_in("view_keylimit", name="viewer"), page_of("keylimit", KEYED))
    assert "acme" not in viewer.html
    JobType.objects.filter(pk=KEYED).update(sensitive=["key"])
    engineer = get(log_in(*PAGE_RIGHTS), page_of("keylimit", KEYED))
    assert "acme" not in engineer.html


def test_an_engineer_overrides_the_rate_of_each_key(
    log_in: LogIn, scene: Scene
) -> None:
    client = log_in(*PAGE_RIGHTS)
    confirm(client, "keylimit", "override", KEYED, concurrency="", rate="10/s")
    assert KeyLimit.objects.get(pk=KEYED).rate_override == "10/1s burst 1"
    page = get(client, page_of("keylimit", KEYED)).text
    assert "Rate of each key 10/1s burst 1" in page
    asked = get(client, "/admin/jobqueue/keylimit/override/", keys=KEYED)
    assert 'value="10/1s burst 1"' in asked.html
    only = {"only_key": "on", "key": "acme"}
    confirm(client, "keylimit", "override", KEYED, concurrency="1", **only)
    assert KeyLimit.objects.get(pk=KEYED).rate_override == "10/1s burst 1"

    confirm(client, "keylimit", "override", KEYED, concurrency="", rate="")

    assert KeyLimit.objects.get(pk=KEYED).rate_override is None


def test_an_engineer_overrides_the_rate_and_the_share_of_one_key(
    log_in: LogIn, scene: Scene
) -> None:
    client = log_in(*PAGE_RIGHTS)
    keyed("acme")
    only = {"only_key": "on", "key": "acme"}
    values = {"concurrency": "", "rate": "10/m", "share": "3"}
    confirm(client, "keylimit", "override", KEYED, **values, **only)
    override = KeyOverride.objects.get()
    assert (override.concurrency, override.rate, override.share) == (
        None,
        "10/60s burst 1",
        3,
    )
    Bucket.objects.create(
        limit_key=override.limit_key, full_at=timezone.now() + timedelta(seconds=125)
    )
    page = get(client, page_of("keylimit", KEYED)).text
    assert "acme 0 2 – 10/60s burst 1 3 1 " in page
    assert "in 2 m" in page
    assert "Key acme: – → 10/60s burst 1, – → 3" in page

    asked = get(client, "/admin/jobqueue/keylimit/override/", keys=KEYED, key="acme")
    assert 'value="10/60s burst 1"' in asked.html
    assert 'value="3"' in asked.html
    refused = confirm(
        client, "keylimit", "override", KEYED, concurrency="", rate="", share="2"
    )
    assert "A share is of one key: name it." in refused.text


def test_the_form_begins_with_what_is_in_force(log_in: LogIn, scene: Scene) -> None:
    KeyLimit.objects.filter(pk=KEYED).update(
        concurrency_override=7, rate_override="9/1s burst 2"
    )
    client = log_in(*PAGE_RIGHTS)
    asked = get(client, "/admin/jobqueue/keylimit/override/", keys=KEYED)
    assert 'value="7"' in asked.html
    assert 'value="9/1s burst 2"' in asked.html


def test_a_strict_order_is_shown_and_no_override_breaks_it(
    log_in: LogIn, scene: Scene
) -> None:
    client = log_in(*PAGE_RIGHTS)
    KeyLimit.objects.filter(pk=KEYED).update(concurrency=1, strict=True)
    keyed("acme", fence=1, run_after=timezone.now() + timedelta(hours=2))
    keyed("acme")
    page = get(client, page_of("keylimit", KEYED)).text
    assert "Order of each key strict: a retry goes first" in page
    assert "in 2 h" in page

    refused = confirm(client, "keylimit", "override", KEYED, concurrency="2")
    assert "jobs of a key run one after the other" in refused.text
    assert KeyLimit.objects.get(pk=KEYED).concurrency_override is None
