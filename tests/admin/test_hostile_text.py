"""Text from jobs and from users stays text, whatever it says, on every page.

One such text on every page, and in every answer, is in ``test_endpoints`` and
``test_roles``; here are others, and other places.
"""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from django_jobqueue.models import Failure, Report
from tests.admin import scene as rows
from tests.admin.crowd import code, hidden
from tests.admin.endpoints import ALL, Endpoint, Keys, said, undone
from tests.admin.hostile import HIDDEN, HOSTILE, LONG, TOGETHER, harmless, infect
from tests.admin.pages import Page, get, list_of, page_of

# The overview, whose page is that of the app, has no objects.
MODELS = sorted({one.model for one in ALL if one.model not in ("", "overview")})
WITHOUT_PAGES = ("alert", "auditentry")
PARAMETERS = ("job_type", "queue", "fingerprint", "state", "status", "q", "after")
MOST = 1_000_000  # characters of a page
Shape = list[tuple[str, list[str]]]


def user_named(name: str) -> Client:
    """A superuser's browser."""
    user = get_user_model().objects.create_superuser(name[:150], "", "x")
    client = Client()
    client.force_login(user)
    return client


def shape_of(page: Page) -> Shape:
    """Elements and the names of their attributes, without their order on the page."""
    return sorted((tag, sorted(attrs)) for tag, attrs in page.elements)


def seen(client: Client, endpoint: Endpoint, keys: Keys, *, post: bool) -> Page:
    """What this address shows, or leads to."""
    address, form = endpoint.address(keys), said(endpoint, keys)
    with undone():
        if post:
            response = client.post(address, form, follow=True)
        else:
            query = {} if endpoint.is_list else form
            response = client.get(address, query, follow=True)
    assert response.status_code < 500
    if response.headers.get("Content-Disposition", "").startswith("attachment"):
        return Page("")  # a file, which no browser takes for a page
    if response.headers.get("Content-Type", "").startswith("application/json"):
        return Page("")  # read by a script, which shows it as text
    return Page(response.content.decode())


def shapes(text: str) -> dict[tuple[str, bool], Shape]:
    """The shapes of all pages and of their answers, when everything has this text."""
    found = {}
    with undone():
        client, keys = user_named(text), infect(text)
        for endpoint in ALL:
            for post in (False, True):
                page = seen(client, endpoint, keys, post=post)
                assert code(page) == [], endpoint
                found[str(endpoint), post] = shape_of(page)
    return found


@pytest.mark.slow("every page with every text, and again with none")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("text", TOGETHER)
def test_a_page_has_the_elements_that_it_has_with_harmless_text(
    db: None, text: str
) -> None:
    found, expected = shapes(text), shapes(harmless(text))
    assert [page for page in found if found[page] != expected[page]] == []


def test_filters_and_searches_show_it_as_text(anna: Client) -> None:
    """Each list with each text in one parameter; the texts take turns."""
    for turn, text in enumerate(HOSTILE):
        with undone():
            infect(text)
            for number, model in enumerate(MODELS):
                if number % len(HOSTILE) != turn:
                    continue
                parameter = PARAMETERS[(number + turn) % len(PARAMETERS)]
                response = anna.get(list_of(model), {parameter: text}, follow=True)
                assert response.status_code in (200, 400)
                assert code(Page(response.content.decode())) == [], (model, parameter)


@pytest.mark.slow("each list, text and parameter")
@pytest.mark.parametrize("text", HOSTILE)
def test_any_filter_shows_it_as_text(anna: Client, text: str) -> None:
    infect(text)
    for model in MODELS:
        for parameter in PARAMETERS:
            response = anna.get(list_of(model), {parameter: text}, follow=True)
            assert response.status_code in (200, 400)
            assert code(Page(response.content.decode())) == [], (model, parameter)


@pytest.mark.slow("that none is left is seen on every page of test_endpoints")
def test_characters_that_hide_or_turn_text_are_shown_as_escapes(anna: Client) -> None:
    """In all but names and notes, which Django shows in titles and forms."""
    keys = infect(HIDDEN, "plain")
    escaped = HIDDEN.encode("ascii", "backslashreplace").decode().replace("\x1b", "")
    escapes = escaped.split("[31m")[0]
    for model in MODELS:
        pages = [get(anna, list_of(model))]
        if model not in WITHOUT_PAGES:
            pages.append(get(anna, page_of(model, keys[model])))
        assert [hidden(page) for page in pages] == [[]] * len(pages), model
        assert escapes in pages[-1].text, model


def test_pages_stay_small_whatever_a_job_says(anna: Client, db: None) -> None:
    said = {"data": {"a": LONG, LONG: [LONG]}, "metadata": {"a": LONG}, "tags": [LONG]}
    error = {"error_class": LONG[:200], "error_message": LONG[:500]}
    over = rows.archived(status="failed", result=[LONG, {LONG: LONG}], **error, **said)
    waiting = rows.queued(attempts=1, **said)
    attempt = {"number": 1, "end": "failed", "traceback": LONG, "log_tail": LONG}
    report = {"fence": 0, "number": 1, "note": LONG[:200], "lines": [[1, "info", LONG]]}
    for id in (over, waiting):
        rows.insert(Failure, {"job_id": id, "job_type": rows.ADD, **attempt, **error})
        rows.insert(Report, {"job_id": id, **report})
    for model, id in (("archivedjob", over), ("queuedjob", waiting)):
        for address in (list_of(model), page_of(model, id)):
            page = get(anna, address)
            assert code(page) == []
            assert len(page.html) < MOST
