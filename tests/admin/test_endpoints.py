"""What holds for every address of the job queue in the admin, whatever it does."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin import site
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from tests.admin.conftest import LogIn
from tests.admin.crowd import MARK, crowd, hidden, problems, told, unstyled
from tests.admin.endpoints import (
    ALL,
    RIGHTS,
    Endpoint,
    Keys,
    everything,
    keys_of,
    models_with_pages,
    nothing_written,
    said,
)
from tests.admin.pages import Page, current_tabs, list_of, request_of
from tests.admin.scene import Scene

REFUSED = 403
NO_GET = 405
SHOWN = (200, 301, 302)
WITHOUT_TEXT = ("", "keylimit")  # the overview; keys are masked for viewers
BY_DJANGO = ("<path:object_id>/history/", "<path:object_id>/")  # without our styles
WITHOUT_TAB = ("", "jobsearch")


@pytest.mark.timeout(300)
def test_every_page_is_whole_and_harmless_and_a_get_never_writes(
    anna: Client, log_in: LogIn
) -> None:
    """Those who may do everything see rows with code, viewers those with hidden
    characters."""
    rows = crowd(is_large=True)
    viewer = log_in(*RIGHTS["Job viewer"])
    found: dict[str, list[str]] = {}
    with nothing_written() as written:
        for endpoint in ALL:
            if endpoint.does or endpoint.is_list or endpoint.is_page:
                ask(anna, endpoint, rows.code, found, written)
            if not endpoint.does or endpoint.is_page:
                ask(viewer, endpoint, rows.hidden, found, written)
    assert "\n".join(f"{k}: {v}" for k, v in found.items()) == ""


def ask(
    client: Client,
    endpoint: Endpoint,
    keys: Keys,
    found: dict[str, list[str]],
    written: list[str],
) -> None:
    """Ask for a page, and note what is wrong with it."""
    before = len(written)
    query = {} if endpoint.is_list or "<" in endpoint.route else said(endpoint, keys)
    response = client.get(endpoint.address(keys), query)
    wrong = [f"writes {sql}" for sql in written[before:]]
    expected = (REFUSED,) if endpoint.is_nobodys else (*SHOWN, NO_GET)
    if response.status_code not in expected:
        wrong.append(f"is answered with {response.status_code}")
    elif response.status_code == 200:
        wrong += wrong_with(response, endpoint)
    if wrong:
        found.setdefault(str(endpoint), []).extend(wrong)


def wrong_with(response: Any, endpoint: Endpoint) -> list[str]:
    """What is wrong with what is shown there."""
    text = response.getvalue().decode()
    if "html" not in response.headers["Content-Type"]:
        return told(text)
    page = Page(text)
    wrong = problems(page)
    if endpoint.route not in BY_DJANGO:
        wrong += unstyled(page)
    has_tab = endpoint.model not in WITHOUT_TAB and "preview" not in endpoint.route
    if has_tab and current_tabs(page) != [list_of(endpoint.model)]:
        wrong.append(f"is below {current_tabs(page)}")
    if endpoint.is_list or endpoint.is_page:
        wrong += hidden(page)
        if MARK not in page.text and endpoint.model not in WITHOUT_TEXT:
            wrong.append("does not show its text")
    return wrong


def test_strangers_staff_without_rights_and_forgers_do_nothing(
    anna: Client, log_in: LogIn, scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """Each address, asked and posted to with all that forms could say."""
    caplog.set_level("CRITICAL", logger="django.request")
    keys = keys_of(scene)
    forger = Client(enforce_csrf_checks=True)
    forger.cookies = anna.cookies
    staff, login = log_in(), reverse("admin:login")
    found = []
    with nothing_written():
        for endpoint in ALL:
            address, form = endpoint.address(keys), said(endpoint, keys)
            query = {} if endpoint.is_list else form
            for response in (
                Client().get(address, query),
                Client().post(address, form),
            ):
                if not response.headers.get("Location", "").startswith(login):
                    found.append(("stranger", endpoint, response.status_code))
            for response in (staff.get(address, query), staff.post(address, form)):
                if response.status_code == 302:  # Django's own short cut to the page
                    response = staff.get(response.headers["Location"])
                if response.status_code not in (REFUSED, NO_GET, 404):
                    found.append(("staff", endpoint, response.status_code))
            if (status := forger.post(address, form).status_code) != REFUSED:
                found.append(("forger", endpoint, status))
    assert found == []


def test_who_is_no_longer_active_is_a_stranger(anna: Client, scene: Scene) -> None:
    get_user_model().objects.update(is_active=False)
    keys = keys_of(scene)
    lists = [endpoint.address(keys) for endpoint in ALL if endpoint.is_list]
    assert {anna.get(address).status_code for address in lists} == {302}
    assert {anna.post(address).status_code for address in lists} == {302}


def test_no_list_offers_a_viewer_anything_and_nobody_a_deletion(
    anna: Client, log_in: LogIn, db: None
) -> None:
    """What a list does not offer cannot be chosen either."""
    viewer = log_in(*RIGHTS["Job viewer"])
    for model in models_with_pages():
        pages, name = site.get_model_admin(model), str(model._meta.model_name)
        assert pages.get_actions(request_of(viewer, list_of(name))) == {}, name
        offered = pages.get_actions(request_of(anna, list_of(name)))
        assert "delete_selected" not in offered, name


def test_a_viewer_who_chooses_what_is_not_offered_changes_nothing(
    log_in: LogIn, scene: Scene
) -> None:
    client = log_in(*RIGHTS["Job viewer"])
    chosen = {"action": "pause", "_selected_action": "tests.sample.add"}
    with nothing_written():
        page = Page(client.post(list_of("jobtype"), chosen, follow=True).text)
    assert page.all("select", name="action") == []


def test_what_the_checks_look_at_notices_a_change(anna: Client, scene: Scene) -> None:
    pause = Endpoint("jobtype", "pause/")
    assert pause in ALL
    keys, before = keys_of(scene), everything()
    form = said(pause, keys)
    with pytest.raises(AssertionError), nothing_written():
        assert anna.post(pause.address(keys), form).status_code == 302
    assert everything() != before
    assert LogEntry.objects.count() == 1
