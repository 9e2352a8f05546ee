"""The pages of tokens: which there are, making one, and revoking some."""

from __future__ import annotations

import logging
import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.test import Client
from django.utils import timezone

from django_jobqueue.domain.api_tokens import digest
from django_jobqueue.models import AuditEntry, Token
from tests.admin.conftest import LogIn
from tests.admin.pages import confirm, get, list_of, page_of, select
from tests.admin.scene import Scene

CREATE = "/admin/jobqueue/token/create/"
RIGHTS = ("view_token", "manage_token")
GIVEN = {
    "name": "shop",
    "scopes": ["enqueue", "read-data"],
    "job_types": "shop.*, mail",
    "queues": "",
    "expires_at": "",
    "confirmed": "1",
}


def names_in(client: Client, query: str) -> list[str]:
    """The tokens that the list shows for these filters."""
    page = get(client, f"{list_of('token')}?{query}")
    links = {link.partition("?")[0] for link in page.links}
    return sorted(
        f"{token.name}{' (revoked)' * (token.revoked_at is not None)}"
        for token in Token.objects.all()
        if page_of("token", token.pk) in links
    )


def test_the_list_and_the_page_say_what_each_allows(anna: Client, scene: Scene) -> None:
    page = get(anna, list_of("token")).text
    for text in ("billing", "shop.*", "enqueue, read", "valid", "expires soon"):
        assert text in page
    assert "0000" not in page  # no hash either
    token = get(anna, page_of("token", scene.tokens["revoked"])).text
    for text in ("revoked", "Revoked by anna", "Created by bert", "Job types every"):
        assert text in token
    assert "Revoke " not in token.replace("Revoked", "")


def test_the_list_is_narrowed_by_state_and_by_name(anna: Client, scene: Scene) -> None:
    assert names_in(anna, "state=valid") == ["billing", "soon"]
    assert names_in(anna, "state=expired") == ["expired"]
    assert names_in(anna, "state=revoked") == ["billing (revoked)"]
    assert names_in(anna, "q=so") == ["soon"]


def test_a_token_is_shown_once_and_kept_nowhere(
    log_in: LogIn, scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client = log_in(*RIGHTS)
    assert CREATE in get(client, list_of("token")).links
    asked = get(client, CREATE)
    assert "only its hash is stored" in asked.text

    answer = client.post(CREATE, GIVEN)
    (text,) = re.findall(r"jq_[0-9]+_[A-Za-z0-9_-]+", answer.content.decode())
    assert answer.status_code == 200
    assert "no-store" in answer.headers["Cache-Control"]
    secret = text.split("_", 2)[2]
    row = Token.objects.get(name="shop")
    assert (row.digest, row.scopes) == (
        digest(secret),
        ["enqueue", "read", "read-data"],
    )
    assert (row.job_types, row.queues, row.expires_at) == (["shop.*", "mail"], [], None)

    assert not list(get_messages(answer.wsgi_request))
    pages = (
        get(client, list_of("token")).html,
        get(client, page_of("token", row.pk)).html,
    )
    entries = [*LogEntry.objects.all(), *AuditEntry.objects.all()]
    kept = (*pages, caplog.text, *(str(vars(entry)) for entry in entries))
    assert not any(secret in one for one in kept)
    assert [entry.verb for entry in AuditEntry.objects.all()] == ["create token"]
    assert LogEntry.objects.get().object_id == str(row.pk)


def test_a_reload_of_the_answer_makes_no_second_one(
    log_in: LogIn, scene: Scene
) -> None:
    client = log_in(*RIGHTS)
    client.post(CREATE, GIVEN)
    again = client.post(CREATE, GIVEN).content.decode()
    assert "There is a token" in again
    assert "jq_" not in again.replace("jq_tok", "")
    assert Token.objects.filter(name="shop").count() == 1


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"name": ""}, "This field is required"),
        ({"name": "billing"}, "There is a token"),
        ({"name": "a\tb"}, "name"),
        ({"scopes": []}, "This field is required"),
        ({"scopes": ["everything"]}, "everything is not one of the available choices"),
        ({"job_types": "a\tb"}, "job types"),
        (
            {"expires_at": "2020-01-01T00:00"},
            "must be in the future",
        ),
        ({"expires_at": "soon"}, "Enter a valid date"),
    ],
)
def test_a_token_that_cannot_be_is_refused(
    log_in: LogIn, scene: Scene, given: dict[str, object], error: str
) -> None:
    before = Token.objects.count()
    page = log_in(*RIGHTS).post(CREATE, {**GIVEN, **given})
    assert error in page.content.decode().replace("&#x27;", "'")
    assert Token.objects.count() == before


def test_a_get_makes_nothing(log_in: LogIn, scene: Scene) -> None:
    before = Token.objects.count()
    log_in(*RIGHTS).get(CREATE, GIVEN)
    assert Token.objects.count() == before


def test_tokens_are_revoked_by_who_confirms_it(log_in: LogIn, scene: Scene) -> None:
    client = log_in(*RIGHTS)
    keys = scene.tokens["billing"], scene.tokens["soon"], scene.tokens["revoked"]
    asked = select(client, "token", "revoke", scene.tokens["billing"]).text
    assert "Revoke the token billing?" in asked
    assert "refused from the next request on" in asked
    assert Token.objects.filter(revoked_at=None).count() == 3

    page = confirm(client, "token", "revoke", *keys).text
    assert "2 tokens were revoked." in page
    assert "1 was skipped" in page
    assert Token.objects.get(revoked_at=None).name == "expired"
    assert AuditEntry.objects.get().verb == "revoke tokens"
    assert "Revoked." in get(client, page_of("token", keys[0])).text


def test_who_may_only_look_makes_and_revokes_none(log_in: LogIn, scene: Scene) -> None:
    client = log_in("view_token")
    assert "Create token" not in get(client, list_of("token")).text
    assert "Revoke" not in get(client, page_of("token", scene.tokens["soon"])).text
    assert client.post(CREATE, GIVEN).status_code == 403
    assert client.get(CREATE).status_code == 403
    assert Token.objects.count() == len(scene.tokens)


def test_an_expiry_is_kept(log_in: LogIn, scene: Scene) -> None:
    moment = timezone.localtime() + timedelta(days=30)
    given = {"expires_at": f"{moment:%Y-%m-%dT%H:%M}"}
    log_in(*RIGHTS).post(CREATE, {**GIVEN, **given})
    made = Token.objects.get(name="shop").expires_at
    assert made is not None
    assert abs(made - moment) < timedelta(seconds=60)
