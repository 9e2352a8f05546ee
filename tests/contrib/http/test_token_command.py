"""``jobqueue token``."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management.base import CommandError
from django.utils import timezone

from django_jobqueue.contrib.http.models import Token
from django_jobqueue.contrib.http.token_scopes import digest, parse_token
from django_jobqueue.models import AuditEntry
from tests.commands.conftest import jobqueue, refusal

pytestmark = pytest.mark.django_db


def test_a_token_is_printed_once_listed_and_revoked() -> None:
    made = jobqueue(
        "token create billing --may enqueue,read-data --types 'shop.*, mail' "
        "--queues q --expires 90d"
    )
    _id, secret = parse_token(made.out.strip()) or (0, "")
    assert "cannot be shown again" in made.err
    row = Token.objects.get()
    assert row.digest == digest(secret)
    assert (row.scopes, row.job_types, row.queues) == (
        ["enqueue", "read", "read-data"],
        ["shop.*", "mail"],
        ["q"],
    )
    assert row.expires_at is not None
    assert timedelta(89) < row.expires_at - timezone.now() < timedelta(91)
    assert row.created_by.startswith("command line")
    assert "shop.*, mail" in jobqueue("token").out
    assert "There is a token 'billing' already" in refusal(
        "token create billing --may read"
    )

    assert "1 token was revoked" in jobqueue("token revoke billing").out
    assert jobqueue("token").out == "There is no token.\n"
    assert "revoked" in jobqueue("token --all").out
    again = jobqueue("token create billing --may read --format json")
    assert again.json["scopes"] == ["read"]
    assert parse_token(again.json["token"])
    assert [one["state"] for one in jobqueue("token --format json").json] == ["valid"]
    assert jobqueue("token revoke billing --format json").json == ["billing"]
    acts = AuditEntry.objects.order_by("pk").values_list("verb", "about")
    assert [*acts][:2] == [
        ("create token", ["billing"]),
        ("revoke tokens", ["billing"]),
    ]


def test_what_cannot_be_is_said_and_nothing_made() -> None:
    for words, match in (
        (("create",), "Name the token"),
        (("create", "a"), "Say what it allows"),
        (("create", "a", "--may", "red"), "no scope 'red'"),
        (("create", "a", "--may", ","), "needs a scope"),
        (("create", "a:b", "--may", "read"), "no colon"),
        (("create", " ", "--may", "read"), "must be a text"),
        (("create", "a", "--may", "read", "--expires", "soon"), "--expires"),
        (("create", "a", "--may", "read", "--expires", "2020-01-01"), "in the future"),
        (("create", "a", "--may", "read", "--types", "x" * 300), "is not a pattern"),
        (("revoke",), "Name the tokens"),
        (("revoke", "b"), "There is no token 'b'"),
        (("list", "b"), "takes no name"),
        (("list", "--may", "read"), "--may goes with create alone"),
        (("revok",), "Did you mean 'revoke'"),
    ):
        with pytest.raises(CommandError, match=match):
            jobqueue("token", *words)
    assert not Token.objects.exists()
