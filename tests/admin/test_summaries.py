"""What lists say of the data of each job, and whom a failure group affects."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_jobqueue.models import JobType
from django_jobqueue.text.redaction import MASK
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.pages import Page, get, list_of, page_of
from tests.admin.scene import ADD, FAIL, LEAK, SECRET, archived, queued
from tests.admin.test_failures import failure, group

ORDER = {"order": 4711, "customer": {"name": "Ann"}, "note": "x" * 500}


@pytest.fixture(params=["queuedjob", "archivedjob"])
def model(request: pytest.FixtureRequest) -> str:
    """Each list of jobs."""
    return str(request.param)


def make(model: str, job_type: str = ADD, **columns: Any) -> UUID:
    """A job of this list."""
    return (queued if model == "queuedjob" else archived)(job_type, **columns)


def test_a_row_says_what_its_data_are(anna: Client, model: str) -> None:
    make(model, data=ORDER)
    assert "order 4711" in get(anna, list_of(model)).text
    JobType.objects.filter(pk=ADD).update(summary="Order {order} of {customer.name}")
    assert "Order 4711 of Ann" in get(anna, list_of(model)).text
    JobType.objects.filter(pk=ADD).update(summary_override="{customer.name}: {order}")
    assert "Ann: 4711" in get(anna, list_of(model)).text


def test_only_who_may_see_data_sees_it(log_in: LogIn, model: str) -> None:
    make(model, data={"order": 4711})
    assert "4711" not in get(log_in(*VIEWS), list_of(model)).text
    client = log_in(*VIEWS, "view_job_data", name="carl")
    assert "order 4711" in get(client, list_of(model)).text


@pytest.mark.parametrize("template", [None, "{token}", "{token} {deep.password}"])
def test_secrets_are_masked(anna: Client, model: str, template: str | None) -> None:
    JobType.objects.filter(pk=LEAK).update(summary=template)
    make(model, LEAK, data={"token": SECRET, "again": SECRET, "deep": {"password": 7}})
    page = get(anna, list_of(model))
    assert SECRET not in page.html
    assert MASK in page.text


@pytest.mark.parametrize("template", [None, "{b}"])
def test_of_large_data_only_the_keys_of_the_template_are_read(
    anna: Client, model: str, template: str | None
) -> None:
    JobType.objects.filter(pk=ADD).update(summary=template)
    noise = "".join(chr(97 + n * n % 26) + str(n) for n in range(20_000))
    make(model, data={"a": noise, "b": "the needle"})
    assert ("the needle" in get(anna, list_of(model)).text) is (template is not None)


@pytest.mark.parametrize("data", [[], 7, "text", {}, {"a": None}])
def test_whatever_plain_sql_wrote_is_no_error(
    anna: Client, model: str, data: Any
) -> None:
    make(model, data=data)
    make(model, data={"a": "<b>bold</b>\u202e"})
    page = get(anna, list_of(model))
    assert "<b>bold" not in page.html
    assert "\u202e" not in page.html
    assert "bold" in page.text


def test_a_list_takes_one_query_more_however_long_it_is(
    anna: Client, model: str
) -> None:
    def queries() -> int:
        get(anna, list_of(model))
        with CaptureQueriesContext(connection) as captured:
            get(anna, list_of(model))
        return len(captured)

    make(model, data={"a": 1})
    first = queries()
    for number in range(20):
        make(model, data={"a": number})
    assert queries() == first


# Whom a failure group affects.


def affected(client: Client, pay: UUID) -> Page:
    """The page of the group."""
    return get(client, page_of("failuregroup", pay))


def test_a_group_says_whom_it_affects_and_leads_to_them(anna: Client) -> None:
    pay = group()
    for number in range(6):
        data = {"customer": 17 if number < 4 else number, "order": 100 + number}
        archived(FAIL, "failed", fingerprint=pay, data=data)
    failure(pay)
    page = affected(anna, pay)
    assert "Affected customer 17 × 4 , 4 × 1 , 5 × 1" in page.text
    assert "order 100 × 1 and 5 others" in page.text
    (link,) = (url for url in page.links if "customer%3A17" in url)
    listed = get(anna, link)
    assert "4 archived jobs" in listed.text


def test_a_template_says_which_keys_count(anna: Client) -> None:
    JobType.objects.filter(pk=FAIL).update(summary="for {customer}")
    pay = group()
    archived(FAIL, "failed", fingerprint=pay, data={"customer": 17, "order": 1})
    failure(pay)
    page = affected(anna, pay)
    assert "customer 17 × 1" in page.text
    assert "order 1" not in page.text


@pytest.mark.parametrize("value", ['it\'s "q" \\ x', 1.5, True, "ünï", " a b "])
def test_a_value_of_any_sort_leads_to_its_jobs(anna: Client, value: Any) -> None:
    pay = group()
    archived(FAIL, "failed", fingerprint=pay, data={"who": value})
    archived(FAIL, "failed", fingerprint=pay, data={"who": "another"})
    archived(FAIL, "failed", fingerprint=pay, data={"who": value})
    failure(pay)
    links = [url for url in affected(anna, pay).links if "data.who" in url]
    assert "2 archived jobs" in get(anna, links[0]).text


def test_what_looks_like_a_credential_is_in_no_address(anna: Client) -> None:
    pay = group()
    data = {"url": "postgresql://shop:s3cr3t@db/shop", "who": "anna"}
    archived(FAIL, "failed", fingerprint=pay, data=data)
    failure(pay)
    page = affected(anna, pay)
    assert "s3cr3t" not in page.html
    assert MASK in page.text
    assert any("data.who" in url for url in page.links)


def test_no_secret_is_among_them_and_no_data_for_who_may_not_see_them(
    anna: Client, log_in: LogIn
) -> None:
    pay = group()
    for job_type in (LEAK, FAIL):
        data = {"token": SECRET, "password": "s3cr3t", "plain": "needle"}
        archived(job_type, "failed", fingerprint=pay, data=data)
    failure(pay)
    page = affected(anna, pay)
    assert SECRET not in page.html
    assert "s3cr3t" not in page.html
    assert "needle × 2" in page.text
    page = affected(log_in(*VIEWS), pay)
    assert "needle" not in page.text
