"""Personal data in the admin: found, erased and deleted, in a few clicks."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from django_jobqueue.domain.personal_value import ERASED
from django_jobqueue.models import ArchivedJob, Erasure, QueuedJob
from django_jobqueue.operations import erasure_chunks, personal_data
from tests.admin.conftest import LogIn
from tests.admin.pages import Page, get, list_of, page_of, post, verb_of
from tests.admin.scene import ADD, archived, queued, worker
from tests.operations.planted import plant, tables_with

pytestmark = pytest.mark.django_db

MAIL = "anna@example.com"
FIND = "/admin/jobqueue/erasure/find/"
RIGHTS = ("view_erasure", "erase_personal_data")


def verb(name: str) -> str:
    """The address of a button of the only erasure."""
    id = Erasure.objects.get().pk
    return reverse(f"admin:jobqueue_erasure_{name}", args=[id])


def find(client: Client, value: str = MAIL, key: str = "") -> Page:
    """The page of the draft."""
    return post(client, FIND, {"value": value, "key": key, "confirmed": "Find"})


def confirmed(client: Client, name: str, **form: Any) -> Page:
    """Press the button of the page that asks, with the number of rows typed."""
    total = Erasure.objects.get().total
    return post(client, verb(name), {"typed": str(total), **form})


def step_to_the_end(client: Client) -> Page:
    """Where there is no worker, press the button that works here."""
    while Erasure.objects.get().state in ("queued", "running"):
        page = post(client, verb("step"), {})
    return page


@pytest.mark.parametrize(("name", "left"), [("erase", [ERASED]), ("delete-rows", [])])
def test_it_is_found_and_erased_in_six_clicks(
    log_in: LogIn, name: str, left: list[str]
) -> None:
    archived(data={"to": MAIL})
    client = log_in(*RIGHTS, "view_overview")
    tab = get(client, reverse("admin:app_list", args=["jobqueue"]))
    assert list_of("erasure") in tab.links  # 1: the tab
    assert FIND in get(client, list_of("erasure")).links  # 2: the button
    page = find(client)  # 3: the value
    assert "All" in page.text
    assert verb(name) in page.links  # 4: the act
    assert "Type 1 to confirm" in get(client, verb(name)).text
    confirmed(client, name, reason="ticket 7")  # 5: sure
    step_to_the_end(client)
    jobs = ArchivedJob.objects.all()
    assert [job.data["to"] for job in jobs] == left
    row = Erasure.objects.get()
    assert (row.state, row.value, row.reason) == ("done", "", "ticket 7")
    assert row.created_by == "bert"
    assert tables_with(MAIL) == []


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


def test_the_page_shows_where_it_is_and_leads_there(anna: Client) -> None:
    plant(MAIL)
    id = archived(data={"to": MAIL})
    page = find(anna)
    for label in ("Archived jobs", "Failure groups", "Schedules", "Audit"):
        assert label in page.text
    assert reverse("admin:jobqueue_job", args=[id]) in page.links
    assert all(MAIL not in link for link in page.links)
    address = page_of("erasure", Erasure.objects.latest("id").pk)
    assert MAIL in get(anna, address).text


def test_who_may_only_look_sees_the_record_and_no_value(
    anna: Client, log_in: LogIn
) -> None:
    archived(data={"to": MAIL})
    find(anna)
    viewer = log_in("view_erasure")
    for address in (list_of("erasure"), page_of("erasure", Erasure.objects.get().pk)):
        assert MAIL not in get(viewer, address).html
    assert viewer.post(FIND, {"value": MAIL}).status_code == 403
    for name in ("erase", "delete-rows", "stop", "step", "resume"):
        assert viewer.post(verb(name), {"typed": "1"}).status_code == 403
    assert ArchivedJob.objects.get().data == {"to": MAIL}


def test_the_number_of_rows_has_to_be_typed(anna: Client) -> None:
    archived(data={"to": MAIL})
    find(anna)
    for typed in ("", "2", "x"):
        page = post(anna, verb("erase"), {"typed": typed})
        assert "Type 1 to confirm" in page.text
    assert Erasure.objects.get().state == "draft"


def test_what_will_happen_to_waiting_and_running_jobs_is_said(anna: Client) -> None:
    queued(ADD, data={"to": MAIL})
    queued(ADD, data={"to": MAIL}, status="running", worker_id=worker())
    find(anna)
    text = get(anna, verb("erase")).text
    assert "Waiting jobs are cancelled" in text
    assert "Running jobs are left" in text
    assert "Waiting jobs 1, Running jobs 1" in text


def test_a_draft_that_found_nothing_offers_nothing(anna: Client) -> None:
    page = find(anna, "nobody@example.com")
    assert verb("erase") not in page.links
    page = post(anna, verb("erase"), {"typed": "0"})
    assert "in another state" in page.text


def test_a_value_that_is_too_short_is_refused(anna: Client) -> None:
    assert "name the key" in find(anna, "7").text
    assert not Erasure.objects.exists()
    find(anna, "7", "customer_id")
    assert Erasure.objects.get().key == "customer_id"


def test_a_discarded_draft_is_forgotten(anna: Client) -> None:
    find(anna)
    page = post(anna, verb("stop"), {})
    assert "The value is forgotten" in page.text
    assert not Erasure.objects.exists()


def test_a_stopped_erasure_forgets_the_value(anna: Client) -> None:
    archived(data={"to": MAIL})
    find(anna)
    confirmed(anna, "erase")
    assert "the value is forgotten" in post(anna, verb("stop"), {}).text
    assert Erasure.objects.get().value == ""
    assert ArchivedJob.objects.get().data == {"to": MAIL}


def test_a_second_press_starts_it_once(anna: Client) -> None:
    archived(data={"to": MAIL})
    find(anna)
    confirmed(anna, "erase")
    assert "in another state" in confirmed(anna, "delete-rows").text
    assert Erasure.objects.get().act == "erase"
    jobs = QueuedJob.objects.filter(job_type_id="jobqueue.bulk")
    assert jobs.count() == 1


def test_a_long_search_goes_on_here_where_there_is_no_worker(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived(data={"to": MAIL})
    monkeypatch.setattr(erasure_chunks, "AT_ONCE", 0.0)
    page = find(anna)
    assert "Being searched" in page.text
    assert verb("erase") not in page.links
    page = post(anna, verb("step"), {})
    assert "1 hold the value" in page.text
    assert verb("erase") in page.links


def test_one_that_failed_is_resumed(anna: Client) -> None:
    archived(data={"to": MAIL})
    find(anna)
    confirmed(anna, "erase")
    Erasure.objects.update(state="failed", error="OperationalError 57014")
    page = get(anna, page_of("erasure", Erasure.objects.get().pk))
    assert "OperationalError 57014" in page.text
    post(anna, verb("resume"), {})
    assert Erasure.objects.get().state == "queued"


def test_running_jobs_that_remain_are_told(anna: Client) -> None:
    find(anna)
    Erasure.objects.update(
        act="erase", state="done", value="", total=1, remaining={"running": 2}
    )
    page = get(anna, page_of("erasure", Erasure.objects.get().pk))
    assert "2 running jobs held the value" in page.text
    assert "Do it again" in page.text


def test_what_was_done_before_is_told(anna: Client) -> None:
    archived(data={"to": MAIL})
    find(anna)
    confirmed(anna, "erase")
    step_to_the_end(anna)
    before = Erasure.objects.get().pk
    page = find(anna)
    assert "Done before about this value" in page.text
    assert page_of("erasure", before) in page.links


def test_no_address_and_no_entry_of_the_history_has_the_value(anna: Client) -> None:
    archived(data={"to": MAIL})
    response = anna.post(FIND, {"value": MAIL, "key": ""})
    assert MAIL not in response.headers["Location"]
    confirmed(anna, "erase", reason=f"of {MAIL}")
    assert LogEntry.objects.exists()
    assert MAIL not in str(list(LogEntry.objects.values()))
    assert tables_with(MAIL) == ["jobqueue_archivedjob", "jobqueue_erasure"]
    personal_data.stop(Erasure.objects.get().pk)
    assert tables_with(MAIL) == ["jobqueue_archivedjob"]
    assert verb_of("erasure", "find") == FIND
