"""Every page is whole, also under the theme that JOBQUEUE_THEME names."""

from __future__ import annotations

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from tests.admin.endpoints import OF_MODEL, Endpoint, Keys, keys_of, said
from tests.admin.pages import Page, get, page_of, verb_of
from tests.admin.scene import FAIL, Scene

SHEET = "/static/django_jobqueue/admin.css"
BY_DJANGO = ("<path:object_id>/history/", "<path:object_id>/")


@pytest.fixture
def keys(scene: Scene) -> Keys:
    """A row of each model."""
    return keys_of(scene)


@pytest.mark.parametrize("endpoints", OF_MODEL.values(), ids=OF_MODEL.keys())
def test_pages_are_whole(anna: Client, keys: Keys, endpoints: list[Endpoint]) -> None:
    for endpoint in endpoints:
        check_page(anna, keys, endpoint)


def check_page(anna: Client, keys: Keys, endpoint: Endpoint) -> None:
    """Whether it has its styles."""
    query = {} if endpoint.is_list else said(endpoint, keys)
    response = anna.get(endpoint.address(keys), query)
    assert response.status_code in (200, 301, 302, 403, 405)
    if response.status_code != 200 or endpoint.route in BY_DJANGO:
        return
    if "html" not in response.headers["Content-Type"]:
        return
    page = Page(response.content.decode())
    sheets = [str(link.get("href")) for link in page.all("link", rel="stylesheet")]
    assert SHEET in sheets
    classes = [str(attrs.get("class")).split() for _tag, attrs in page.elements]
    assert any("jq" in found for found in classes)
    own = [sheet for sheet in sheets if "django_jobqueue" in sheet]
    assert all(finders.find(sheet.removeprefix("/static/")) for sheet in own)


def test_what_can_be_done_with_an_object_is_on_its_page(
    anna: Client, scene: Scene
) -> None:
    page = get(anna, page_of("jobtype", FAIL))
    assert verb_of("jobtype", "pause") in {
        link.partition("?")[0] for link in page.links
    }
