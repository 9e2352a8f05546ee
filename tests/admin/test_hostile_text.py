"""Text from jobs and from users stays text, whatever it says, on every page.

One such text on every page, and in every answer, is in ``test_endpoints`` and
``test_roles``; here are others, and other places.
"""

from __future__ import annotations

from itertools import product

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from django_jobqueue.models import Failure, Report
from tests.admin import scene as rows
from tests.admin.crowd import code
from tests.admin.endpoints import ALL, said
from tests.admin.hostile import HOSTILE, LONG, TOGETHER, infect
from tests.admin.pages import Page, get, list_of, page_of
from tests.support.undone import undone

# The overview, whose page is that of the app, has no objects.
MODELS = sorted({one.model for one in ALL if one.model not in ("", "overview")})
PARAMETERS = ("job_type", "queue", "fingerprint", "state", "status", "q", "after")
MOST = 600_000  # characters of a page


@pytest.mark.slow("every page and answer with every text")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("text", TOGETHER)
def test_no_page_and_no_answer_has_code(db: None, text: str) -> None:
    client, keys = Client(), infect(text)
    client.force_login(get_user_model().objects.create_superuser(text[:150], "", "x"))
    found = []
    for endpoint, ask in product(ALL, (client.get, client.post)):
        form = {} if endpoint.is_list and ask == client.get else said(endpoint, keys)
        with undone():
            response = ask(endpoint.address(keys), form, follow=True)
            assert response.status_code < 500, endpoint
            if "html" in response.headers.get("Content-Type", ""):
                found += [(str(endpoint), code(Page(response.getvalue().decode())))]
    assert [one for one in found if one[1]] == []


def test_filters_and_searches_show_it_as_text(anna: Client) -> None:
    """Each list with each text in one parameter; the texts take turns."""
    for turn, text in enumerate(HOSTILE):
        with undone():
            infect(text)
            for number, model in list(enumerate(MODELS))[turn :: len(HOSTILE)]:
                check_list(anna, model, PARAMETERS[number % len(PARAMETERS)], text)


@pytest.mark.slow("each list, text and parameter")
@pytest.mark.parametrize("text", HOSTILE)
def test_any_filter_shows_it_as_text(anna: Client, text: str) -> None:
    infect(text)
    for model, parameter in product(MODELS, PARAMETERS):
        check_list(anna, model, parameter, text)


def check_list(client: Client, model: str, parameter: str, text: str) -> None:
    """Whether the list that is narrowed by this text has it as text."""
    response = client.get(list_of(model), {parameter: text}, follow=True)
    assert response.status_code in (200, 400)
    assert code(Page(response.content.decode())) == [], (model, parameter)


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
    lists = [list_of(model) for model in ("archivedjob", "queuedjob")]
    pages = [page_of("archivedjob", over), page_of("queuedjob", waiting)]
    found = [get(anna, address) for address in (*lists, *pages)]
    assert [code(page) for page in found] == [[]] * 4
    assert [len(page.html) for page in found if len(page.html) > MOST] == []
