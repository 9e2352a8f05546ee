"""The bar on a page of the project: ``{% job_progress job %}``."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.template import Context, Template
from django.test import Client
from django.utils import translation

from django_jobqueue import InvalidArguments, get_job
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.progress import progress_of_many
from tests.admin import scene as rows
from tests.admin.pages import Page
from tests.progress.rows import running, told
from tests.sample import jobs

pytestmark = pytest.mark.django_db

HOSTILE = '"><script>alert(1)</script>'


def drawn(job: Any, arguments: str = "", **context: Any) -> Page:
    """What the tag draws."""
    text = f"{{% load job_progress %}}{{% job_progress job {arguments} %}}"
    return Page(Template(text).render(Context({"job": job, **context})))


def bar(page: Page) -> dict[str, str | None]:
    (found,) = page.all("progress")
    return found


def root(page: Page) -> dict[str, str | None]:
    (found,) = page.all("job-progress")
    return found


def test_a_running_job_is_a_bar_with_words() -> None:
    id = running()
    told(id, done=30, total=120, note="resizing")
    page = drawn(id, 'label="Import of customers"')
    assert bar(page)["value"] == "0.25"
    assert page.text.startswith(
        "Import of customers 25 running 30 of 120 (25 %) resizing Refresh"
    )
    assert page.all("label")[0]["for"] == bar(page)["id"]
    assert root(page)["data-status"] == "running"


def test_the_page_has_what_it_needs_to_ask(client: Client) -> None:
    id = running()
    address = root(drawn(id))["data-url"]
    assert client.get(str(address)).json()["status"] == "running"


def test_what_changes_seldom_is_read_out_and_numbers_are_not() -> None:
    (live,) = [one for _, one in drawn(running()).elements if "aria-live" in one]
    assert "data-job-status" in live


@pytest.mark.dear
def test_scripts_and_styles_are_files() -> None:
    page = drawn(running(), csp_nonce="n0nce")
    (script,) = page.all("script")
    (style,) = page.all("link")
    assert (script["type"], script["src"]) == (
        "module",
        "/static/django_jobqueue/progress.js",
    )
    assert style["href"] == "/static/django_jobqueue/progress.css"
    assert script["nonce"] == style["nonce"] == "n0nce"
    assert not [one for _, one in page.elements if "style" in one]


@pytest.mark.parametrize("kind", ["id", "text", "job", "row", "archived"])
def test_a_job_is_whatever_has_its_id(kind: str) -> None:
    id = rows.archived() if kind == "archived" else running()
    given = {
        "id": lambda: id,
        "text": lambda: f"job_{id}",
        "job": lambda: get_job(id),
        "row": lambda: QueuedJob.objects.get(pk=id),
        "archived": lambda: ArchivedJob.objects.get(pk=id),
    }[kind]()
    assert bar(drawn(given))["id"] == f"job-{id.hex}"


def test_one_that_is_over_asks_no_more() -> None:
    page = drawn(rows.archived(), "reload=True")
    assert bar(page)["value"] == "1.0"
    assert root(page) == {"data-status": "succeeded"}
    assert "Refresh" not in page.text


def test_a_running_job_that_told_nothing_has_a_bar_that_moves() -> None:
    assert "value" not in bar(drawn(running()))


@pytest.mark.parametrize("status", ["failed", "cancelled", "expired"])
def test_one_that_ended_otherwise_and_one_that_waits_have_an_empty_bar(
    status: str,
) -> None:
    page = drawn(rows.archived(status=status))
    assert (bar(page)["value"], root(page)["data-status"]) == ("0.0", status)
    assert bar(drawn(rows.queued()))["value"] == "0.0"


def test_what_is_to_happen_at_the_end_is_said_to_the_script() -> None:
    page = drawn(running(), "url=where reload=True", where="/done/")
    assert root(page)["data-then"] == "/done/"
    assert "data-reload" in root(page)
    assert "data-then" not in root(drawn(running()))
    assert "data-reload" not in root(drawn(running()))


def test_a_job_that_is_not_kept_breaks_no_page() -> None:
    page = drawn(uuid4())
    assert "no longer known" in page.text
    assert "data-url" not in root(page)


def test_nothing_is_drawn_for_no_job() -> None:
    assert drawn(None).html.strip() == drawn("").html.strip() == ""


def test_what_is_no_job_is_refused() -> None:
    with pytest.raises(InvalidArguments, match="'seven' is not a job id"):
        drawn("seven")


def test_notes_and_labels_are_escaped() -> None:
    id = running()
    told(id, note=HOSTILE)
    page = drawn(id, "label=label url=label", label=HOSTILE)
    assert "<script>alert" not in page.html
    assert len(page.all("script")) == 1
    assert page.text.count("alert(1)") == 2


@pytest.mark.urls("tests.progress.no_urls")
def test_without_the_addresses_it_says_what_to_do() -> None:
    with pytest.raises(
        ImproperlyConfigured, match=r'include\("django_jobqueue.urls"\)'
    ):
        drawn(running())
    assert bar(drawn(rows.archived()))


def test_it_is_one_query(django_assert_num_queries: Any) -> None:
    id = running()
    with django_assert_num_queries(1):
        drawn(id)


def test_many_bars_are_one_query_if_they_were_asked_for_together(
    django_assert_num_queries: Any,
) -> None:
    ids = [running(), rows.archived(), rows.queued()]
    with django_assert_num_queries(1):
        pages = [drawn(found) for found in progress_of_many(ids).values()]
    found = {str(bar(page)["id"]) for page in pages}
    assert found == {f"job-{id.hex}" for id in ids}


def test_it_speaks_german_and_numbers_stay_readable_for_the_script() -> None:
    id = running()
    told(id, done=1234, total=5000)
    with translation.override("de"):
        page = drawn(id)
    assert "läuft 1.234 von 5.000 (24 %)" in page.text
    assert bar(page)["value"] == "0.2468"
    assert root(page)["data-again"] == "1.0"
    assert root(page)["data-word-succeeded"] == "erledigt"


@pytest.mark.parametrize("mode", ["immediate", "on_commit"])
def test_a_page_is_whole_where_jobs_run_when_they_are_enqueued(
    mode: str, settings: Any, django_assert_num_queries: Any
) -> None:
    settings.JOBQUEUE = {"MODE": mode}
    job = jobs.add.enqueue(1, 2)
    with django_assert_num_queries(0):
        page = drawn(job.id)
        gone = drawn(uuid4())
    assert root(page)["data-status"] == job.status
    assert root(gone)["data-status"] == "gone"
    assert job.is_over == (mode == "immediate")
