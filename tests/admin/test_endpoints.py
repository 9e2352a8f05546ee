"""What holds for every address of the job queue in the admin, whatever it does."""

from __future__ import annotations

import re

import pytest
from django.contrib.admin import site
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse
from django.utils import translation

from tests.admin.conftest import LogIn
from tests.admin.crowd import MARK, crowd, hidden, problems, told, unstyled
from tests.admin.endpoints import (
    ALL,
    OWN,
    PARAMETER,
    RIGHTS,
    Endpoint,
    Keys,
    everything,
    keys_of,
    models_with_pages,
    nothing_written,
    said,
)
from tests.admin.pages import Page, current_tabs, list_of
from tests.admin.scene import Scene
from tests.admin.units import request_of

PARTS = 3
REFUSED = 403
NO_GET = 405
SHOWN = (200, 301, 302)
WITHOUT_TEXT = ("", "keylimit")  # the overview; keys are masked for viewers
BY_DJANGO = ("<path:object_id>/history/", "<path:object_id>/")  # without our styles
WITHOUT_TAB = ("", "jobsearch", "savedview")
DOES = re.compile(
    "|".join(
        f"/{one.model}/{PARAMETER.sub('[^/]+', one.route)}(?:[?]|$)"
        for one in ALL
        if one.does and not one.is_page and one.name not in OWN
    )
)


# A part of them at a time: tests elsewhere wait for transactions of all databases.
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_is_whole_and_harmless_and_a_get_never_writes(
    anna: Client, log_in: LogIn, part: int
) -> None:
    """Those who may do everything see rows with code, in German; viewers see those with
    hidden characters, and are offered nothing."""
    rows = crowd(is_large=True)
    viewer = log_in(*RIGHTS["Job viewer"])
    found: dict[str, list[str]] = {}
    with nothing_written() as written:
        for endpoint in ALL[part::PARTS]:
            if endpoint.does or endpoint.is_list or endpoint.is_page:
                with translation.override("de"):
                    ask(anna, endpoint, rows.code, found, written)
            if not endpoint.does or endpoint.is_page:
                page = ask(viewer, endpoint, rows.hidden, found, written)
                if page and (offers := offered(page)):
                    found.setdefault(str(endpoint), []).append(f"offers {offers}")
    assert "\n".join(f"{k}: {v}" for k, v in found.items()) == ""


def ask(
    client: Client,
    endpoint: Endpoint,
    keys: Keys,
    found: dict[str, list[str]],
    written: list[str],
) -> Page | None:
    """Ask for a page, and note what is wrong with it."""
    before = len(written)
    query = {} if endpoint.is_list or "<" in endpoint.route else said(endpoint, keys)
    response = client.get(endpoint.address(keys), query)
    wrong = [f"writes {sql}" for sql in written[before:]]
    expected = (REFUSED,) if endpoint.is_nobodys else (*SHOWN, NO_GET)
    page = None
    if response.status_code not in expected:
        wrong.append(f"is answered with {response.status_code}")
    elif response.status_code == 200:
        text = response.getvalue().decode()
        page = Page(text) if "html" in response.headers["Content-Type"] else None
        wrong += wrong_with(page, endpoint) if page else told(text)
    if wrong:
        found.setdefault(str(endpoint), []).extend(wrong)
    return page


def offered(page: Page) -> list[str]:
    """What could be done from there, but views that users save for themselves."""
    names = ("href", "action", "formaction")
    addresses = [one.get(name) or "" for _tag, one in page.elements for name in names]
    buttons = [*page.all("select", name="action"), *page.all("input", name="_save")]
    return [*filter(DOES.search, addresses), *map(str, buttons)]


def wrong_with(page: Page, endpoint: Endpoint) -> list[str]:
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
    """Each address that does something, posted to with all that forms could say; and
    each of the others, asked for."""
    caplog.set_level("CRITICAL", logger="django.request")
    keys = keys_of(scene)
    forger = Client(enforce_csrf_checks=True)
    forger.cookies = anna.cookies
    staff, stranger, login = log_in(), Client(), reverse("admin:login")
    found = []
    with nothing_written():
        for endpoint in ALL:
            address, form = endpoint.address(keys), said(endpoint, keys)
            if endpoint.does:
                answers = [one.post(address, form) for one in (stranger, staff)]
                if (status := forger.post(address, form).status_code) != REFUSED:
                    found.append(("forger", endpoint, status))
            else:
                answers = [one.get(address) for one in (stranger, staff)]
            if not answers[0].headers.get("Location", "").startswith(login):
                found.append(("stranger", endpoint, answers[0].status_code))
            if answers[1].status_code == 302:  # Django's own short cut to the page
                answers[1] = staff.get(answers[1].headers["Location"])
            if answers[1].status_code not in (REFUSED, NO_GET, 404):
                found.append(("staff", endpoint, answers[1].status_code))
    assert found == []


def test_who_is_no_longer_active_is_a_stranger(anna: Client, db: None) -> None:
    get_user_model().objects.update(is_active=False)
    for endpoint in ALL:
        if endpoint.is_list:
            assert anna.get(endpoint.address({})).status_code == 302
            assert anna.post(endpoint.address({})).status_code == 302


def test_no_list_offers_a_viewer_anything_and_nobody_a_deletion(
    anna: Client, log_in: LogIn, scene: Scene
) -> None:
    viewer = log_in(*RIGHTS["Job viewer"])
    for model in models_with_pages():
        pages, name = site.get_model_admin(model), str(model._meta.model_name)
        assert pages.get_actions(request_of(viewer, list_of(name))) == {}, name
        offered = pages.get_actions(request_of(anna, list_of(name)))
        assert "delete_selected" not in offered, name
    # What a list does not offer cannot be chosen either.
    chosen = {"action": "pause", "_selected_action": "tests.sample.add"}
    with nothing_written():
        viewer.post(list_of("jobtype"), chosen)


def test_what_the_checks_look_at_notices_a_change(anna: Client, scene: Scene) -> None:
    pause = Endpoint("jobtype", "pause/")
    assert pause in ALL
    keys, before = keys_of(scene), everything()
    form = said(pause, keys)
    with pytest.raises(AssertionError), nothing_written():
        assert anna.post(pause.address(keys), form).status_code == 302
    assert everything() != before
    assert LogEntry.objects.count() == 1
