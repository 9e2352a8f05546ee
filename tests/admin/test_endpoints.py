"""What holds for every address of the job queue in the admin, whatever it does."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from django_jobqueue.management.jobqueue.roles import ROLES
from tests.admin.conftest import LogIn
from tests.admin.endpoints import (
    ALL,
    OF_MODEL,
    OWN,
    Endpoint,
    Keys,
    actions,
    answers,
    everything,
    keys_of,
    nothing_written,
    said,
)
from tests.admin.pages import select
from tests.admin.scene import Scene

REFUSED = 403
NO_GET = 405
SHOWN = (200, 301, 302)


@pytest.fixture
def keys(scene: Scene) -> Keys:
    """A row of each model."""
    return keys_of(scene)


all_of_each_model = pytest.mark.parametrize(
    "endpoints", OF_MODEL.values(), ids=OF_MODEL.keys()
)


@all_of_each_model
def test_a_stranger_is_sent_to_the_login(keys: Keys, endpoints: list[Endpoint]) -> None:
    with nothing_written():
        for endpoint in endpoints:
            for response in answers(Client(), endpoint, keys):
                assert response.status_code == 302, endpoint
                to = response.headers["Location"]
                assert to.startswith(reverse("admin:login")), endpoint


@all_of_each_model
def test_staff_without_rights_sees_and_does_nothing(
    log_in: LogIn, keys: Keys, endpoints: list[Endpoint]
) -> None:
    client = log_in()
    with nothing_written():
        for endpoint in endpoints:
            for response in answers(client, endpoint, keys):
                if response.status_code == 302:  # Django's own short cut to the page
                    response = client.get(response.headers["Location"])
                assert response.status_code in (REFUSED, NO_GET, 404), endpoint


@all_of_each_model
def test_a_viewer_changes_nothing(
    log_in: LogIn, keys: Keys, endpoints: list[Endpoint]
) -> None:
    """A page that only shows answers a POST as it does a GET; all else refuses it."""
    client = log_in(*ROLES["Job viewer"])
    with nothing_written():
        for endpoint in endpoints:
            if str(endpoint) in OWN:
                continue  # see test_saved_views
            shown, posted = (
                response.status_code for response in answers(client, endpoint, keys)
            )
            refusals = (shown, REFUSED, NO_GET) if shown in SHOWN else (REFUSED,)
            assert shown in (*SHOWN, REFUSED, NO_GET), endpoint
            assert posted in refusals, endpoint


@pytest.mark.parametrize(("model", "action"), actions())
def test_a_viewer_cannot_choose_what_a_list_does_not_offer(
    log_in: LogIn, keys: Keys, model: str, action: str
) -> None:
    client = log_in(*ROLES["Job viewer"])
    key = str(keys[model])
    with nothing_written():
        page = select(client, model, action, key)
    assert page.all("select", name="action") == []


@all_of_each_model
def test_a_post_needs_a_token_against_forgery(
    anna: Client, keys: Keys, endpoints: list[Endpoint]
) -> None:
    client = Client(enforce_csrf_checks=True)
    client.cookies = anna.cookies
    with nothing_written():
        for endpoint in endpoints:
            _shown, posted = answers(client, endpoint, keys)
            assert posted.status_code == REFUSED, endpoint


@all_of_each_model
def test_a_get_never_writes(
    anna: Client, keys: Keys, endpoints: list[Endpoint]
) -> None:
    with nothing_written():
        for endpoint in endpoints:
            address, form = endpoint.address(keys), said(endpoint, keys)
            shown = anna.get(address).status_code
            assert shown in (*SHOWN, REFUSED, NO_GET), endpoint
            assert anna.get(address, form).status_code < 500, endpoint


@all_of_each_model
def test_who_is_no_longer_active_is_a_stranger(
    anna: Client, keys: Keys, endpoints: list[Endpoint]
) -> None:
    get_user_model().objects.update(is_active=False)
    for endpoint in endpoints:
        found = [response.status_code for response in answers(anna, endpoint, keys)]
        assert found == [302, 302], endpoint


def test_what_the_checks_look_at_notices_a_change(anna: Client, keys: Keys) -> None:
    pause = Endpoint("jobtype", "pause/")
    assert pause in ALL
    before = everything()
    form = said(pause, keys)
    with pytest.raises(AssertionError), nothing_written():
        assert anna.post(pause.address(keys), form).status_code == 302
    assert everything() != before
    assert LogEntry.objects.count() == 1
