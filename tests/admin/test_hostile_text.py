"""Text from jobs and from users stays text, whatever it says, on every page."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from tests.admin.endpoints import ALL, Endpoint, Keys, said, undone
from tests.admin.hostile import HIDDEN, HOSTILE, LONG, MARK, TOGETHER, harmless, infect
from tests.admin.pages import Page, get, list_of, page_of
from tests.support.selection import some_slow

# The overview, whose page is that of the app, has no objects.
MODELS = sorted({one.model for one in ALL if one.model not in ("", "overview")})
PARAMETERS = (
    "after",
    "fingerprint",
    "finished_at__range__gte_0",
    "job_type",
    "q",
    "queue",
    "state",
    "status",
)
PARTS = 4  # of the endpoints: all of them take a busy machine some minutes
MOST = 1_000_000  # characters of a page
Shape = list[tuple[str, list[str]]]


def addresses_of(model: str, key: object) -> list[str]:
    """The list, and the page of this row where rows have pages."""
    pages = [] if model in ("alert", "auditentry") else [page_of(model, key)]
    return [list_of(model), *pages]


def user_named(name: str) -> Client:
    """A superuser's browser."""
    user = get_user_model().objects.create_superuser(name[:150], "", "x")
    client = Client()
    client.force_login(user)
    return client


def shape_of(page: Page) -> Shape:
    """Elements and the names of their attributes, without their order on the page."""
    return sorted((tag, sorted(attrs)) for tag, attrs in page.elements)


def check(page: Page) -> None:
    """Nothing on the page is code."""
    for tag, attributes in page.elements:
        assert MARK not in tag
        assert not [name for name in attributes if name.startswith("on")]
        assert not [name for name in attributes if MARK in name or name == "style"]
        if tag == "script":
            assert attributes.get("src") or attributes.get("type") == "application/json"
        for name in ("href", "src", "action", "formaction"):
            assert not str(attributes.get(name)).startswith("javascript")
    assert not page.all("b", id=MARK)


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


def shapes(text: str, endpoints: list[Endpoint]) -> dict[tuple[str, bool], Shape]:
    """The shapes of these pages and of their answers, when everything has this text."""
    found = {}
    with undone():
        client, keys = user_named(text), infect(text)
        for endpoint in endpoints:
            for post in (False, True):
                page = seen(client, endpoint, keys, post=post)
                check(page)
                found[str(endpoint), post] = shape_of(page)
    return found


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("text", some_slow(TOGETHER, TOGETHER[:1]))
def test_a_page_has_the_elements_that_it_has_with_harmless_text(
    db: None, text: str, part: int
) -> None:
    some = ALL[part::PARTS]
    found, expected = shapes(text, some), shapes(harmless(text), some)
    assert [page for page in found if found[page] != expected[page]] == []


@pytest.mark.parametrize("model", MODELS)
def test_lists_and_pages_show_it(anna: Client, model: str) -> None:
    key = infect(HOSTILE[0])[model]
    for address in addresses_of(model, key):
        assert MARK in get(anna, address).text


@pytest.mark.parametrize("text", some_slow(HOSTILE, HOSTILE[:2]))
@pytest.mark.parametrize("model", MODELS)
def test_filters_and_searches_show_it_as_text(
    anna: Client, model: str, text: str
) -> None:
    infect(text)
    parameters = (
        "job_type queue fingerprint state status q finished__range__gte_0 after"
    )
    for parameter in parameters.split():
        response = anna.get(list_of(model), {parameter: text}, follow=True)
        assert response.status_code in (200, 400)
        check(Page(response.content.decode()))


@pytest.mark.parametrize("model", MODELS)
def test_characters_that_hide_or_turn_text_are_shown_as_escapes(
    anna: Client, model: str
) -> None:
    """In all but names and notes, which Django shows in titles and forms."""
    key = infect(HIDDEN, "plain")[model]
    for address in addresses_of(model, key):
        text = get(anna, address).text
        assert not [hidden for hidden in "\u202e\u200b\x1b\ufeff" if hidden in text]
    assert f"\\u202e{MARK}\\u200b\\u001b[31m\\ufeff" in text


@pytest.mark.parametrize("model", ["archivedjob", "queuedjob"])
def test_pages_stay_small_whatever_a_job_says(anna: Client, model: str) -> None:
    key = infect(LONG, "plain")[model]
    for address in (list_of(model), page_of(model, key)):
        page = get(anna, address)
        check(page)
        assert len(page.html) < MOST
