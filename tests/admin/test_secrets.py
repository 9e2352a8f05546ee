"""Secrets are masked wherever a page could show them, also to superusers.

Credentials in all texts of every page are in ``test_endpoints``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from django_jobqueue.admin.jobs import download
from django_jobqueue.admin.parts import json_text
from django_jobqueue.models import ArchivedJob, FailureGroup
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.crowd import PIN, told
from tests.admin.pages import get, list_of, page_of, select
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


def text_of(client: Client, of: str, job: UUID) -> str:
    """The page of an archived job, or a file of its result."""
    address = page_of("archivedjob", job)
    if of == "download":
        address = address.replace("/change/", "/download/") + "?of=result"
    return str(client.get(address).content.decode())


def test_values_under_the_usual_names_of_secrets_are_masked(
    anna: Client, db: None
) -> None:
    for key in ("password", "API_KEY", "card", "sessionId", "cvv"):
        value = {"plain": {key: SECRET, "deep": [{key: {"inner": SECRET}}]}}
        page = get(
            anna, page_of("archivedjob", rows.archived(data=value, result=value))
        )
        assert SECRET not in page.html
        assert page.text.count(f'"{key}": "••••"') == 4, key
    # And under those that the job type calls sensitive.
    rows.JobType.objects.filter(pk=LEAK).update(sensitive=["Address"])
    data = {"address": {"street": SECRET}, "order": 7}
    id = rows.archived(LEAK, "failed", data=data, error_message=f"no {SECRET} found")
    page = get(anna, page_of("archivedjob", id))
    assert SECRET not in page.html
    assert '"order": 7' in page.text


RESULTS: tuple[Any, ...] = (
    SECRET,
    {"echo": SECRET},
    {"a": [{"b": [SECRET, 7]}]},
    {"said": f"sent to {SECRET}, twice"},
    {SECRET: 7},
    {f"to {SECRET}": 7},
    {"door": PIN},
    {"door": f"door {PIN}"},
    {"said": repr(f"{SECRET}'s")},
)


def test_a_sensitive_value_that_a_handler_returns_is_masked(
    anna: Client, log_in: LogIn, db: None
) -> None:
    """Wherever it stands there: the data say what is secret."""
    data = {"token": SECRET, "door": {"token": PIN}}
    for result in RESULTS:
        job = rows.archived(LEAK, data=data, result=result, metadata={"a": result})
        for of in ("page", "download"):
            text = text_of(anna, of, job)
            assert "••••" in text
            assert told(text) == [], (of, result)
    # Nor does anybody see one in a key who sees only keys and types.
    job = rows.archived(LEAK, data=data, result={f"to {SECRET}": 7})
    page = get(log_in("view_archivedjob"), page_of("archivedjob", job))
    assert SECRET not in page.html
    assert '"to ••••": number' in page.text
    # Whoever edits data sees it under no key.
    waiting = rows.queued(LEAK, data={"token": SECRET, "note": f"for {SECRET}"})
    address = page_of("queuedjob", waiting).replace("/change/", "/edit_data/")
    page = get(anna, address)
    assert SECRET not in page.html
    assert "note" in page.html
    # What is not secret is shown as it is.
    result = {"sum": 3, "texts": ["for Ann"], "ok": True}
    plain = {"token": "abc", "sum": 3, "flag": True}
    page = get(
        anna, page_of("archivedjob", rows.archived(LEAK, data=plain, result=result))
    )
    for text in ('"sum": 3', '"for Ann"', '"ok": true'):
        assert text in page.text


def test_beside_data_that_cannot_be_read_no_value_is_shown(
    anna: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is secret is not known then."""
    monkeypatch.setattr(json_text, "LONGEST", 1_000)
    monkeypatch.setattr(json_text.stored, "__defaults__", (1_000,))
    monkeypatch.setattr(json_text.value_of, "__defaults__", (1_000,))
    monkeypatch.setattr(download, "LARGEST", 1_000)
    data = {"token": SECRET, "long": "x" * 1_000}
    for column, of in (
        ("result", "page"),
        ("metadata", "page"),
        ("result", "download"),
    ):
        job = rows.archived(LEAK, data=data, **{column: {"echo": SECRET}})
        text = text_of(anna, of, job)
        assert SECRET not in text
        assert ("Python cannot read" in text) or ("only keys and types" in text)


def test_a_page_offers_to_reveal_what_it_masks(anna: Client, db: None) -> None:
    offer = "Reveal masked values (logged)"
    plain = rows.archived(LEAK, data={"order_id": 7}, result={"sum": 3})
    assert offer not in get(anna, page_of("archivedjob", plain)).text
    for data in ({"token": SECRET}, {"note": f"Bearer {SECRET}"}):
        masked = rows.archived(LEAK, data={"order_id": 7}, result=data)
        assert offer in get(anna, page_of("archivedjob", masked)).text
        waiting = rows.queued(LEAK, data=data)
        assert offer in get(anna, page_of("queuedjob", waiting)).text
    job = rows.archived(LEAK, data={"token": SECRET}, result={"echo": SECRET})
    address = page_of("archivedjob", job).replace("/change/", "/reveal/")
    assert anna.post(address).content.decode().count(SECRET) == 2
