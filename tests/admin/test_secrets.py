"""Secrets are masked wherever a page could show them, also to superusers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from django_jobqueue.admin.jobs import download
from django_jobqueue.admin.parts import json_text
from django_jobqueue.models import (
    ArchivedJob,
    Failure,
    FailureGroup,
)
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.crowd import CREDENTIALS, PIN, told
from tests.admin.pages import get, list_of, page_of, select, verb_of
from tests.admin.scene import LEAK, SECRET
from tests.sample.jobs import leak


def test_a_sensitive_value_is_nowhere_from_the_handler_to_the_last_page(
    transactional_db: None, make_worker: Callable[..., Any]
) -> None:
    worker = make_worker()
    leak.enqueue(SECRET)
    get_user_model().objects.create_superuser("anna", "", "x")
    client = Client()
    client.force_login(get_user_model().objects.get())
    waiting = rows.QueuedJob.objects.get().pk
    pages = [
        get(client, page_of("queuedjob", waiting)),
        get(client, list_of("queuedjob")),
        select(client, "queuedjob", "cancel", waiting),
    ]
    worker.work()
    over = ArchivedJob.objects.get().pk
    pages += [
        get(client, page_of("archivedjob", over)),
        get(client, list_of("archivedjob")),
        select(client, "archivedjob", "replay", over),
        get(client, list_of("failuregroup")),
        get(client, page_of("failuregroup", FailureGroup.objects.get().pk)),
    ]
    assert [page.html.count(SECRET) for page in pages] == [0] * len(pages)
    assert '"token": "••••"' in pages[3].text
    assert "cannot use ••••" in pages[3].text


@pytest.mark.parametrize("text", CREDENTIALS)
def test_what_looks_like_a_credential_is_masked(
    db: None, anna: Client, text: str
) -> None:
    """Also if it was stored unmasked, by an older release or by plain SQL."""
    group = rows.uuid4()
    error = {"error_class": "E", "error_message": text, "fingerprint": group}
    data = {"note": text, "list": [{"note": text}]}
    over = rows.archived(status="failed", data=data, result=text, **error)
    waiting = rows.queued(data=data, attempts=1)
    for id in (over, waiting):
        Failure.objects.create(
            job_id=id,
            job_type=rows.ADD,
            number=1,
            end="failed",
            traceback=text,
            log_tail=text,
            **error,
        )
    FailureGroup.objects.create(
        fingerprint=group, coarse=group, error_class="E", frame="f", template=text
    )
    for page in (
        get(anna, list_of("archivedjob")),
        get(anna, list_of("queuedjob")),
        get(anna, list_of("failuregroup")),
        get(anna, page_of("archivedjob", over)),
        get(anna, page_of("queuedjob", waiting)),
        get(anna, page_of("failuregroup", group)),
        get(anna, verb_of("archivedjob", "replay"), keys=str(over)),
    ):
        assert told(page.html) == []


@pytest.mark.parametrize("key", ["password", "API_KEY", "card", "sessionId", "cvv"])
def test_values_under_the_usual_names_of_secrets_are_masked(
    anna: Client, db: None, key: str
) -> None:
    value = {"plain": {key: SECRET, "deep": [{key: {"inner": SECRET}}]}}
    id = rows.archived(data=value, result=value)
    page = get(anna, page_of("archivedjob", id))
    assert SECRET not in page.html
    assert page.text.count(f'"{key}": "••••"') == 4


def test_keys_that_only_the_job_type_calls_sensitive_are_masked(
    anna: Client, db: None
) -> None:
    rows.JobType.objects.filter(pk=LEAK).update(sensitive=["Address"])
    data = {"address": {"street": SECRET}, "order": 7}
    id = rows.archived(LEAK, "failed", data=data, error_message=f"no {SECRET} found")
    page = get(anna, page_of("archivedjob", id))
    assert SECRET not in page.html
    assert '"order": 7' in page.text


RESULTS: dict[str, Any] = {
    "quarantined": SECRET,
    "under another key": {"echo": SECRET},
    "deep": {"a": [{"b": [SECRET, 7]}]},
    "in a text": {"said": f"sent to {SECRET}, twice"},
    "as a key": {SECRET: 7},
    "in a key": {f"to {SECRET}": 7},
    "a number": {"door": PIN},
    "a number as text": {"door": f"door {PIN}"},
    "escaped": {"said": repr(f"{SECRET}'s")},
}


@pytest.mark.parametrize("shape", RESULTS)
@pytest.mark.parametrize("where", ["page", "download", "metadata"])
def test_a_sensitive_value_that_a_handler_returns_is_masked(
    anna: Client, db: None, shape: str, where: str
) -> None:
    """Wherever it stands there: the data say what is secret."""
    result = RESULTS[shape]
    columns = {"metadata": result} if where == "metadata" else {"result": result}
    data = {"token": SECRET, "door": {"token": PIN}}
    job = rows.archived(LEAK, data=data, **columns)
    address = page_of("archivedjob", job)
    if where == "download":
        address = address.replace("/change/", "/download/") + "?of=result"
    text = anna.get(address).content.decode()
    assert "••••" in text
    assert SECRET not in text
    assert str(PIN) not in text


@pytest.mark.parametrize("where", ["result", "metadata", "download"])
def test_beside_data_that_cannot_be_read_no_value_is_shown(
    anna: Client, db: None, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """What is secret is not known then."""
    monkeypatch.setattr(json_text, "LONGEST", 1_000)
    monkeypatch.setattr(json_text.stored, "__defaults__", (1_000,))
    monkeypatch.setattr(json_text.value_of, "__defaults__", (1_000,))
    monkeypatch.setattr(download, "LARGEST", 1_000)
    data = {"token": SECRET, "long": "x" * 1_000}
    column = "metadata" if where == "metadata" else "result"
    job = rows.archived(LEAK, data=data, **{column: {"echo": SECRET}})
    address = page_of("archivedjob", job)
    if where == "download":
        address = address.replace("/change/", "/download/") + "?of=result"
    text = anna.get(address).content.decode()
    assert SECRET not in text
    assert ("Python cannot read" in text) or ("only keys and types" in text)


def test_who_sees_only_keys_and_types_sees_no_secret_in_a_key(
    log_in: LogIn, db: None
) -> None:
    job = rows.archived(LEAK, data={"token": SECRET}, result={f"to {SECRET}": 7})
    page = get(log_in("view_archivedjob"), page_of("archivedjob", job))
    assert SECRET not in page.html
    assert '"to ••••": number' in page.text


def test_whoever_edits_data_sees_a_secret_under_no_key(anna: Client, db: None) -> None:
    job = rows.queued(LEAK, data={"token": SECRET, "note": f"for {SECRET}"})
    address = page_of("queuedjob", job).replace("/change/", "/edit_data/")
    page = get(anna, address)
    assert SECRET not in page.html
    assert "note" in page.html


def test_what_is_not_secret_is_shown_as_it_is(anna: Client, db: None) -> None:
    result = {"sum": 3, "texts": ["for Ann"], "ok": True}
    data = {"token": "abc", "sum": 3, "flag": True}
    job = rows.archived(LEAK, data=data, result=result)
    page = get(anna, page_of("archivedjob", job))
    for text in ('"sum": 3', '"for Ann"', '"ok": true'):
        assert text in page.text


def test_whoever_may_reveals_the_result_as_it_is(anna: Client, db: None) -> None:
    job = rows.archived(LEAK, data={"token": SECRET}, result={"echo": SECRET})
    address = page_of("archivedjob", job).replace("/change/", "/reveal/")
    assert anna.post(address).content.decode().count(SECRET) == 2


@pytest.mark.parametrize("data", [{"token": SECRET}, {"note": f"Bearer {SECRET}"}])
def test_a_page_offers_to_reveal_what_it_masks(
    anna: Client, db: None, data: dict[str, str]
) -> None:
    plain = rows.archived(LEAK, data={"order_id": 7}, result={"sum": 3})
    masked = rows.archived(LEAK, data={"order_id": 7}, result=data)
    offer = "Reveal masked values (logged)"
    assert offer not in get(anna, page_of("archivedjob", plain)).text
    assert offer in get(anna, page_of("archivedjob", masked)).text
    assert offer in get(anna, page_of("queuedjob", rows.queued(LEAK, data=data))).text
