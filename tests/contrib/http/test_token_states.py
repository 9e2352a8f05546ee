"""Whether a token is valid is stated in many places: they agree on each state."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from django_jobqueue.contrib.http import token_rows
from django_jobqueue.contrib.http.admin.token_list import TokenStateFilter, state_of
from django_jobqueue.contrib.http.models import Token
from django_jobqueue.contrib.http.token_operations import create_token
from django_jobqueue.store.connection import DjangoDatabase
from tests.commands.conftest import jobqueue
from tests.contrib.http.conftest import Program
from tests.contrib.http.test_callers import BASIC, basic
from tests.support.undone import check_each, undone

pytestmark = pytest.mark.django_db

FILTER: Any = None  # it is of no page
HOUR = timedelta(hours=1)
STATES = {  # what it is, by when it expires and was revoked, both from now
    "valid": [(None, None), (HOUR, None), (60 * 24 * HOUR, None)],
    "expired": [(-timedelta(seconds=1), None), (-HOUR, None)],
    "revoked": [(None, -HOUR), (HOUR, -HOUR), (-HOUR, -2 * HOUR)],
}


def test_a_token_is_valid_wherever_it_is_asked_for() -> None:
    made, db = create_token("ann", "read"), DjangoDatabase()
    secret = made.text.split("_", 2)[2]

    @undone()
    def check(state: str, expires: timedelta | None, revoked: timedelta | None) -> None:
        now = timezone.now()
        Token.objects.update(
            expires_at=expires and now + expires, revoked_at=revoked and now + revoked
        )
        is_valid = state == "valid"
        assert (Program(made.text).send("GET", "/jobs").status_code == 200) is is_valid
        with BASIC:
            answer = Program().send("GET", "/jobs", Authorization=basic("ann", secret))
        assert (answer.status_code == 200) is is_valid
        (row,) = token_rows.tokens(db)
        assert row.is_valid is is_valid
        shown = {
            name: TokenStateFilter.narrowed(FILTER, Token.objects.all(), name).exists()
            for name in STATES
        }
        assert shown == {name: name == state for name in STATES}
        wanted = ("valid", "expires soon") if is_valid else (state,)
        assert any(f">{word}<" in str(state_of(Token.objects.get())) for word in wanted)
        (said,) = jobqueue("token list --all --format json").json
        assert said["state"] == state

    cases = [(name, *when) for name, ways in STATES.items() for when in ways]
    check_each(check, cases, least=8)
