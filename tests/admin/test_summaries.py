"""What lists say of the data of each job, and whom a failure group affects."""

from __future__ import annotations

from uuid import UUID

from django.test import Client

from django_jobqueue.models import ArchivedJob, JobType
from django_jobqueue.text.redaction import MASK
from tests.admin import units
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.pages import Page, get, list_of, page_of
from tests.admin.scene import ADD, FAIL, LEAK, SECRET, archived, queued
from tests.admin.test_failures import failure, group

ORDER = {"order": 4711, "customer": {"name": "Ann"}, "note": "x" * 500}
MODELS = {"queuedjob": queued, "archivedjob": archived}


def test_a_row_says_what_its_data_are_to_those_who_may_see_them(
    anna: Client, log_in: LogIn
) -> None:
    blind, sees = log_in(*VIEWS), log_in(*VIEWS, "view_job_data", name="carl")
    for model, make in MODELS.items():
        JobType.objects.filter(pk=ADD).update(summary=None, summary_override=None)
        make(ADD, data=ORDER)
        assert "4711" not in get(blind, list_of(model)).text
        assert "order 4711" in get(sees, list_of(model)).text
        JobType.objects.filter(pk=ADD).update(summary="Order {order} {customer.name}")
        assert "Order 4711 Ann" in get(anna, list_of(model)).text
        JobType.objects.filter(pk=ADD).update(summary_override="{customer.name}:")
        assert "Ann:" in get(anna, list_of(model)).text


def test_secrets_are_masked_and_of_large_data_only_named_keys_are_read(
    anna: Client, db: None
) -> None:
    noise = "".join(chr(97 + n * n % 26) + str(n) for n in range(20_000))
    for model, make in MODELS.items():
        make(LEAK, data={"token": SECRET, "again": SECRET, "deep": {"password": 7}})
        for template in (None, "{token} {deep.password}"):
            JobType.objects.filter(pk=LEAK).update(summary=template)
            page = get(anna, list_of(model))
            assert SECRET not in page.html
            assert MASK in page.text
        make(ADD, data={"a": noise, "b": "the needle"})
        for template, is_read in ((None, False), ("{b}", True)):
            JobType.objects.filter(pk=ADD).update(summary=template)
            assert ("the needle" in get(anna, list_of(model)).text) is is_read
        # Whatever plain SQL wrote is no error.
        JobType.objects.update(summary=None)
        for data in ([], 7, "text", {}, {"a": None}, {"a": "<b>bold</b>\u202e"}):
            make(ADD, data=data)
        page = get(anna, list_of(model))
        assert "<b>bold" not in page.html
        assert "\u202e" not in page.html
        assert "bold" in page.text


# Whom a failure group affects.


def affected(client: Client, pay: UUID) -> Page:
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


def test_a_template_says_which_keys_count_and_no_secret_does(
    anna: Client, log_in: LogIn
) -> None:
    pay = group()
    failure(pay)
    for job_type in (LEAK, FAIL):
        data = {"token": SECRET, "password": "s3cr3t", "plain": "needle"}
        archived(job_type, "failed", fingerprint=pay, data=data)
    page = affected(anna, pay)
    assert SECRET not in page.html
    assert "s3cr3t" not in page.html
    assert "needle × 2" in page.text
    assert "needle" not in affected(log_in(*VIEWS), pay).text
    JobType.objects.filter(pk=FAIL).update(summary="for {customer}")
    archived(FAIL, "failed", fingerprint=pay, data={"customer": 17, "order": 1})
    page = affected(anna, pay)
    assert "customer 17 × 1" in page.text
    assert "order 1" not in page.text


def test_a_value_of_any_sort_leads_to_its_jobs_but_no_credential(
    anna: Client, db: None
) -> None:
    pay = group()
    failure(pay)
    for value in ('it\'s "q" \\ ünï ', 1.5, True):
        ArchivedJob.objects.all().delete()
        for who in (value, "another", value):
            archived(FAIL, "failed", fingerprint=pay, data={"who": who})
        links = [url for url in affected(anna, pay).links if "data.who" in url]
        query = links[0].partition("?")[2]
        assert len(units.following(anna, "archivedjob", query).result_list) == 2, value
    data = {"url": "postgresql://shop:s3cr3t@db/shop", "who": "anna"}
    archived(FAIL, "failed", fingerprint=pay, data=data)
    page = affected(anna, pay)
    assert "s3cr3t" not in page.html
    assert MASK in page.text
    assert any("data.who" in url for url in page.links)
