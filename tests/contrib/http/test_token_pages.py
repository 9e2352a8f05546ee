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

from django_jobqueue.contrib.http.models import Token
from django_jobqueue.contrib.http.token_scopes import RIGHTS as OF_SCOPES
from django_jobqueue.contrib.http.token_scopes import Scope, digest
from django_jobqueue.models import AuditEntry
from tests.admin.conftest import LogIn
from tests.admin.pages import get, list_of, page_of, select
from tests.admin.scene import Scene
from tests.admin.units import act, answer, buttons, errors_of, listing

CREATE = "/admin/jobqueue_http/token/create/"
MANAGES = ("view_token", "manage_token")
RIGHTS = (*MANAGES, *OF_SCOPES[Scope.ENQUEUE], *OF_SCOPES[Scope.READ_DATA])
GIVEN = {
    "name": "shop",
    "scopes": ["enqueue", "read-data"],
    "job_types": "shop.*, mail",
    "queues": "",
    "expires_at": "",
    "confirmed": "1",
}


def test_the_list_and_the_page_say_what_each_allows(
    anna: Client, log_in: LogIn, scene: Scene
) -> None:
    page = get(anna, list_of("token")).text
    for text in ("billing", "shop.*", "enqueue, read", "valid", "expires soon"):
        assert text in page
    assert "0000" not in page  # no hash either
    token = get(anna, page_of("token", scene.tokens["revoked"])).text
    for text in ("revoked", "Revoked by anna", "Created by bert", "Job types every"):
        assert text in token
    assert "Revoke " not in token.replace("Revoked", "")
    for query, names in (
        ({"state": "valid"}, ["billing", "soon"]),
        ({"state": "expired"}, ["expired"]),
        ({"state": "revoked"}, ["revoked"]),
        ({"q": "so"}, ["soon"]),
    ):
        found = {row.pk for row in listing(anna, "token", **query).result_list}
        assert found == {scene.tokens[name] for name in names}, query
    # Who may only look makes and revokes none.
    client = log_in("view_token")
    assert "Create token" not in get(client, list_of("token")).text
    assert buttons(client, "token", scene.tokens["soon"]) == set()
    assert client.post(CREATE, GIVEN).status_code == 403
    assert client.get(CREATE).status_code == 403
    assert Token.objects.count() == len(scene.tokens)


def test_a_token_is_shown_once_and_kept_nowhere(
    log_in: LogIn, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client = log_in(*RIGHTS)
    assert CREATE in get(client, list_of("token")).links
    asked = get(client, CREATE, **GIVEN)  # which makes nothing
    assert "only its hash is stored" in asked.text
    assert not Token.objects.exists()

    answered = client.post(CREATE, GIVEN)
    (text,) = re.findall(r"jq_[0-9]+_[A-Za-z0-9_-]+", answered.content.decode())
    assert answered.status_code == 200
    assert "no-store" in answered.headers["Cache-Control"]
    secret = text.split("_", 2)[2]
    row = Token.objects.get(name="shop")
    scopes = ["enqueue", "read", "read-data"]
    assert (row.digest, row.scopes) == (digest(secret), scopes)
    assert (row.job_types, row.queues, row.expires_at) == (["shop.*", "mail"], [], None)

    assert not list(get_messages(answered.wsgi_request))
    pages = [get(client, it) for it in (list_of("token"), page_of("token", row.pk))]
    entries = [*LogEntry.objects.all(), *AuditEntry.objects.all()]
    kept = (caplog.text, *(page.html for page in pages), *map(str, map(vars, entries)))
    assert not any(secret in one for one in kept)
    assert [entry.verb for entry in AuditEntry.objects.all()] == ["create token"]
    assert LogEntry.objects.get().object_id == str(row.pk)
    # A reload of the answer makes no second one.
    again = client.post(CREATE, GIVEN).content.decode()
    assert "There is a token" in again
    assert "jq_" not in again.replace("jq_tok", "")
    assert Token.objects.filter(name="shop").count() == 1


def test_nobody_gives_a_token_what_they_may_not_do(log_in: LogIn) -> None:
    """Or who manages tokens might do all that there is, by a token."""
    for number, scope in enumerate(Scope):
        others = {r for one in Scope if one != scope for r in OF_SCOPES[one]}
        lacking = sorted(others - {*OF_SCOPES[scope][-1:]})
        client = log_in(*MANAGES, *lacking, name=f"bert{number}")
        errors = errors_of(answer(client, CREATE, {**GIVEN, "scopes": [scope.value]}))
        assert f"{scope.value} is not one of the available choices" in errors
    assert not Token.objects.exists()


def test_a_token_that_cannot_be_is_refused_and_an_expiry_is_kept(
    log_in: LogIn, scene: Scene
) -> None:
    client = log_in(*RIGHTS)
    given: dict[str, object]
    for given, error in (
        ({"name": ""}, "name: This field is required"),
        ({"name": "billing"}, "There is a token"),
        ({"name": "a\tb"}, "name"),
        ({"scopes": []}, "scopes: This field is required"),
        ({"scopes": ["everything"]}, "everything is not one of the available choices"),
        ({"job_types": "a\tb"}, "is not a pattern of job types"),
        ({"expires_at": "2020-01-01T00:00"}, "must be in the future"),
        ({"expires_at": "soon"}, "Enter a valid date"),
    ):
        assert error in errors_of(answer(client, CREATE, {**GIVEN, **given})), given
    assert Token.objects.count() == len(scene.tokens)
    moment = timezone.localtime() + timedelta(days=30)
    answer(client, CREATE, {**GIVEN, "expires_at": f"{moment:%Y-%m-%dT%H:%M}"})
    made = Token.objects.get(name="shop").expires_at
    assert made is not None
    assert abs(made - moment) < timedelta(seconds=60)


def test_tokens_are_revoked_by_who_confirms_it(log_in: LogIn, scene: Scene) -> None:
    client = log_in(*RIGHTS)
    keys = scene.tokens["billing"], scene.tokens["soon"], scene.tokens["revoked"]
    asked = select(client, "token", "revoke", scene.tokens["billing"]).text
    assert "Revoke the token billing?" in asked
    assert "refused from the next request on" in asked
    assert Token.objects.filter(revoked_at=None).count() == 3
    told = act(client, "token", "revoke", *keys)
    assert "2 tokens were revoked." in told
    assert "1 was skipped" in told
    assert Token.objects.get(revoked_at=None).name == "expired"
    assert AuditEntry.objects.get().verb == "revoke tokens"
    assert "Revoked." in get(client, page_of("token", keys[0])).text
