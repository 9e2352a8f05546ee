"""Personal data in the admin: found, erased and deleted, in a few clicks."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from django_jobqueue.contrib.privacy import personal_data
from django_jobqueue.contrib.privacy.models import Erasure
from django_jobqueue.contrib.privacy.personal_value import ERASED
from django_jobqueue.contrib.privacy.searched_tables import sources
from django_jobqueue.models import ArchivedJob, QueuedJob
from tests.admin.conftest import LogIn
from tests.admin.pages import Page, get, list_of, page_of, post
from tests.admin.scene import ADD, archived, queued, worker
from tests.admin.units import answer, press
from tests.contrib.privacy.planted import plant, tables_with

pytestmark = pytest.mark.django_db

MAIL = "anna@example.com"
FIND = "/admin/jobqueue_privacy/erasure/find/"
RIGHTS = ("view_erasure", "erase_personal_data")


def verb(name: str) -> str:
    id = Erasure.objects.get().pk
    return reverse(f"admin:jobqueue_privacy_erasure_{name}", args=[id])


def find(client: Client, value: str = MAIL, key: str = "") -> str:
    """Draft an erasure: the address of its page, which has no value."""
    response = client.post(FIND, {"value": value, "key": key, "confirmed": "Find"})
    assert MAIL not in response.headers["Location"]
    return str(response.headers["Location"])


def shown(client: Client) -> Page:
    return get(client, page_of("erasure", Erasure.objects.get().pk))


def confirmed(client: Client, name: str, **form: Any) -> str:
    """Press the button of the page that asks; what is told."""
    total = Erasure.objects.get().total
    return press(client, verb(name), typed=str(total), **form)


def step_to_the_end(client: Client) -> None:
    """Where there is no worker, press the button that works here."""
    while Erasure.objects.get().state in ("queued", "running"):
        press(client, verb("step"))


def test_it_is_found_and_erased_or_deleted_in_six_clicks(log_in: LogIn) -> None:
    client = log_in(*RIGHTS, "view_overview")
    tab = get(client, reverse("admin:app_list", args=["jobqueue"]))
    assert list_of("erasure") in tab.links  # 1: the tab
    assert FIND in get(client, list_of("erasure")).links  # 2: the button
    for name, left in (("erase", [ERASED]), ("delete-rows", [])):
        archived(data={"to": MAIL})
        page = get(client, find(client))  # 3: the value
        assert "All" in page.text
        assert verb(name) in page.links  # 4: the act
        assert "Type 1 to confirm" in get(client, verb(name)).text
        for typed in ("", "2", "x"):
            asked = answer(client, verb(name), {"typed": typed})
            assert not asked.context_data["form"].is_valid(), typed
        assert Erasure.objects.get().state == "draft"
        confirmed(client, name, reason=f"ticket 7 of {MAIL}")  # 5: sure
        step_to_the_end(client)
        assert [job.data["to"] for job in ArchivedJob.objects.all()] == left
        row = Erasure.objects.get()
        assert (row.state, row.value, row.created_by) == ("done", "", "bert")
        assert row.reason.startswith("ticket 7 of ")
        assert LogEntry.objects.filter(object_id=str(row.pk)).exists()
        assert MAIL not in str(list(LogEntry.objects.values()))
        assert tables_with(MAIL) == []
        ArchivedJob.objects.all().delete()
        Erasure.objects.all().delete()


def test_a_search_leads_to_personal_data(log_in: LogIn) -> None:
    archived(data={"to": MAIL})
    client = log_in(*RIGHTS, "view_archivedjob", "view_job_data")
    search = reverse("admin:jobqueue_search")
    for query, key in ((MAIL, ""), (f"data.to:{MAIL}", "to")):
        page = get(client, search, q=query)
        (field,) = page.all("input", name="value")
        assert field["value"] == MAIL
        assert page.all("input", name="key")[0]["value"] == key
    page = get(log_in("view_archivedjob", name="carl"), search, q=MAIL)
    assert page.all("input", name="value") == []


def test_the_page_shows_where_it_is_and_what_will_happen_to_jobs(
    anna: Client, log_in: LogIn
) -> None:
    plant(MAIL)
    id = archived(data={"to": MAIL})
    queued(ADD, data={"to": MAIL}, status="running", worker_id=worker())
    address = find(anna)
    page = get(anna, address)
    for label in (*(str(one.label) for one in sources()), "Running jobs", MAIL):
        assert label in page.text
    assert reverse("admin:jobqueue_job", args=[id]) in page.links
    assert all(MAIL not in link for link in page.links)
    text = get(anna, address.replace("/change/", "/erase/")).text
    for said in ("Waiting jobs are cancelled", "Running jobs are left"):
        assert said in text
    # Who may only look sees the record and no value.
    viewer = log_in("view_erasure")
    Erasure.objects.filter(state="done").delete()  # planted with a reason
    for place in (list_of("erasure"), address):
        assert MAIL not in get(viewer, place).html
    assert viewer.post(FIND, {"value": MAIL}).status_code == 403
    for name in ("erase", "delete-rows", "stop", "step", "resume"):
        place = address.replace("/change/", f"/{name}/")
        assert viewer.post(place, {"typed": "1"}).status_code == 403
    assert Erasure.objects.get(value=MAIL).state == "draft"


def test_a_value_that_is_too_short_or_found_nowhere_is_not_erased(anna: Client) -> None:
    assert "name the key" in post(anna, FIND, {"value": "7", "confirmed": "1"}).text
    assert not Erasure.objects.exists()
    find(anna, "7", "customer_id")
    assert Erasure.objects.get().key == "customer_id"
    assert verb("erase") not in shown(anna).links
    assert "its state has changed" in press(anna, verb("erase"), typed="0")


def test_an_erasure_is_started_once_and_discarded_stopped_or_resumed(
    anna: Client,
) -> None:
    find(anna)
    assert "and the value deleted" in press(anna, verb("stop"))
    assert not Erasure.objects.exists()

    archived(data={"to": MAIL})
    find(anna)
    confirmed(anna, "erase")
    assert "its state has changed" in confirmed(anna, "delete-rows")
    assert Erasure.objects.get().act == "erase"
    jobs = QueuedJob.objects.filter(job_type_id="jobqueue.bulk")
    assert jobs.count() == 1
    Erasure.objects.update(state="failed", error="OperationalError 57014")
    assert "OperationalError 57014" in shown(anna).text
    press(anna, verb("resume"))
    assert Erasure.objects.get().state == "queued"
    assert "the value is deleted" in press(anna, verb("stop"))
    assert Erasure.objects.get().value == ""
    assert ArchivedJob.objects.get().data == {"to": MAIL}


def test_a_long_search_goes_on_here_where_there_is_no_worker(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived(data={"to": MAIL})
    monkeypatch.setattr(personal_data, "AT_ONCE", 0.0)
    find(anna)
    page = shown(anna)
    assert "Searching" in page.text
    assert verb("erase") not in page.links
    press(anna, verb("step"))
    page = shown(anna)
    assert "1 contain the value" in page.text
    assert verb("erase") in page.links


def test_what_was_done_before_and_running_jobs_that_remain_are_told(
    anna: Client,
) -> None:
    archived(data={"to": MAIL})
    find(anna)
    confirmed(anna, "erase")
    step_to_the_end(anna)
    before = Erasure.objects.get().pk
    page = get(anna, find(anna))
    assert "Earlier actions on this value" in page.text
    assert page_of("erasure", before) in page.links
    Erasure.objects.filter(pk=before).update(remaining={"running": 2})
    page = get(anna, page_of("erasure", before))
    assert "2 running jobs had the value" in page.text
    assert "Repeat this" in page.text
