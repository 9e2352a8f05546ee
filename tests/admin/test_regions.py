"""A refresh of an open page costs what changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from django.contrib.messages import get_messages
from django.contrib.sessions.models import Session
from django.test import Client

import django_jobqueue
from django_jobqueue.admin.regions import HEADER
from django_jobqueue.models import BulkOperation
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.stats import overview
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.pages import get, list_of, page_of
from tests.admin.scene import ADD, Scene

FRONT = "/admin/jobqueue/"
PACKAGE = Path(django_jobqueue.__file__).parent
REGION = re.compile(r'data-jq-region="([^"]+)" data-jq-version="([^"]+)"')


def shown(html: str) -> dict[str, str]:
    """The versions of the regions of a page."""
    return dict(REGION.findall(html))


def refresh(client: Client, address: str, known: dict[str, str]) -> Any:
    """Ask as the script of an open page does."""
    said = ",".join(f"{name}={version}" for name, version in known.items())
    return client.get(address, headers={HEADER: said or "-"})


def pages(scene: Scene) -> list[str]:
    """A page of each part that refreshes itself."""
    return [
        FRONT,
        *map(list_of, ("archivedjob", "failuregroup", "queue", "worker")),
        page_of("queuedjob", scene.queued["ready"]),
        page_of("jobtype", ADD),
        page_of("queue", "default"),
    ]


def test_every_region_of_a_template_is_one_for_a_refresh_too() -> None:
    for template in PACKAGE.rglob("*.html"):
        text = template.read_text()
        assert text.count("data-jq-region=") == text.count("{% jq_region %}"), template


def test_a_refresh_answers_with_regions_and_only_to_those_who_may_see_them(
    log_in: LogIn, anna: Client, scene: Scene
) -> None:
    nobody = log_in()
    for address in pages(scene):
        html = get(anna, address).html
        versions = shown(html)
        assert html.count("data-jq-region=") == len(versions) > 0, address
        answer = refresh(anna, address, {}).content.decode()
        assert set(shown(answer)) == set(versions), address
        assert "<html" not in answer
        assert '<nav class="jq-tabs"' not in answer
        response = refresh(nobody, address, {})
        assert response.status_code in (302, 403, 404), address
        assert b"data-jq-region" not in response.content
    address = list_of("keylimit")  # it shows no ages, which change by themselves
    answer = refresh(anna, address, shown(get(anna, address).html))
    assert (answer.status_code, answer.content) == (200, b"")
    for said in ("", "-", "rows", "=,=,,", 'rows="><jq-b>', "ä"):
        response = anna.get(address, headers={HEADER: said})
        assert response.status_code == 200
        assert b"><jq-b>" not in response.content
    Session.objects.all().delete()
    assert refresh(anna, FRONT, {}).status_code == 302


def test_only_what_changed_is_sent(anna: Client, scene: Scene) -> None:
    address = list_of("queuedjob")
    versions = shown(get(anna, address).html)
    id = rows.queued()
    answer = refresh(anna, address, versions).content.decode()
    assert {"rows", "counter"} <= set(shown(answer))
    assert str(id) in answer
    overview.forget()
    versions = shown(get(anna, FRONT).html)
    rows.queued()
    overview.forget()
    answer = shown(refresh(anna, FRONT, versions).content.decode())
    assert "cards" in answer
    assert "workers" not in answer or "operations" not in answer


def test_a_form_in_a_region_does_not_change_by_its_token(
    anna: Client, scene: Scene
) -> None:
    draft = bulk.draft("replay", Selection(Table.ARCHIVED))
    address = page_of("bulkoperation", draft.id)
    first = get(anna, address).html
    second = get(anna, address).html
    tokens = re.compile(r'csrfmiddlewaretoken" value="([^"]+)')
    assert tokens.findall(first) != tokens.findall(second)
    assert shown(first)["draft"] == shown(second)["draft"]


def test_a_refresh_leaves_messages_to_the_next_page(anna: Client, scene: Scene) -> None:
    BulkOperation.objects.all().delete()
    address = list_of("queuedjob")
    data = {
        "action": "cancel",
        "index": 0,
        "_selected_action": [str(scene.queued["later"])],
    }
    anna.post(list_of("archivedjob"), data)  # a row of another list: gone
    waiting = [str(m) for m in get_messages(anna.get(address).wsgi_request)]
    anna.post(list_of("archivedjob"), data)
    refresh(anna, address, {})
    refresh(anna, FRONT, {})
    refresh(anna, f"{address}?q=attempts:x", {})
    assert [str(m) for m in get_messages(anna.get(address).wsgi_request)] == waiting
