"""What a browser is told: about one job, if it has the token, and never too much."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.core.signing import TimestampSigner
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation

from django_jobqueue.progress import SALT, token
from tests.admin import scene as rows
from tests.admin.scene import LEAK, SECRET
from tests.progress.rows import running, told

pytestmark = pytest.mark.django_db


@pytest.fixture
def visitor() -> Client:
    """A browser of somebody who never logged in."""
    return Client()


def address(token: str) -> str:
    return reverse("jobqueue:progress", args=[token])


def answer(client: Client, id: UUID) -> dict[str, Any]:
    response = client.get(address(token(id)))
    assert response.status_code == 200
    found: dict[str, Any] = response.json()
    return found


def test_who_has_the_token_is_told_how_far_the_job_is(visitor: Client) -> None:
    id = running()
    told(id, done=30, total=120, note="resizing")
    assert answer(visitor, id) == {
        "status": "running",
        "is_over": False,
        "done": 30.0,
        "total": 120.0,
        "fraction": 0.25,
        "text": "30 of 120 (25 %)",
        "note": "resizing",
        "again": 1.0,
    }


def test_it_is_one_query_and_no_session(
    visitor: Client, django_assert_num_queries: Any
) -> None:
    asked = address(token(running()))
    with django_assert_num_queries(1):
        response = visitor.get(asked)
    assert not response.cookies
    assert "Cookie" not in response.headers.get("Vary", "")


def test_data_results_and_errors_are_not_told(visitor: Client) -> None:
    secret = {"data": {"token": SECRET}, "error_message": SECRET, "error_class": SECRET}
    id = rows.archived(LEAK, "failed", result={"token": SECRET}, **secret)
    response = visitor.get(address(token(id)))
    assert response.json()["status"] == "failed"
    assert SECRET not in response.content.decode()


def test_the_end_is_told_and_nothing_more_is_asked_for(visitor: Client) -> None:
    found = answer(visitor, rows.archived())
    assert (found["status"], found["is_over"], found["fraction"]) == (
        "succeeded",
        True,
        1.0,
    )
    assert found["again"] is None


@pytest.mark.parametrize(
    ("seconds", "again"), [(0, 1.0), (5, 1.0), (60, 6.0), (600, 15.0), (-3600, 15.0)]
)
def test_the_less_happens_the_less_is_asked(
    visitor: Client, seconds: int, again: float
) -> None:
    moment = timezone.now() - timedelta(seconds=seconds)
    found = answer(visitor, rows.queued(run_after=moment))
    assert found["again"] == pytest.approx(again, abs=0.5)


def test_an_id_is_no_token(visitor: Client) -> None:
    id = running()
    for guess in (str(id), id.hex, token(id)[:-1], token(id) + "x", "x", "a:b:c"):
        response = visitor.get(address(guess))
        assert response.status_code == 404, guess
        assert "status" not in response.json()


def test_a_token_is_good_for_its_own_job_alone(visitor: Client) -> None:
    mine, other = running(), running()
    forged = token(mine).replace(mine.hex, other.hex)
    assert visitor.get(address(forged)).status_code == 404


def test_what_is_signed_for_another_purpose_is_no_token(visitor: Client) -> None:
    id = running()
    for signer in (
        TimestampSigner(),
        TimestampSigner(salt="another"),
        TimestampSigner(salt=SALT, key="another"),
    ):
        assert visitor.get(address(signer.sign(id.hex))).status_code == 404


def test_a_token_ends(visitor: Client, settings: Any) -> None:
    asked = address(_token_of(running(), hours=25))
    response = visitor.get(asked)
    assert response.status_code == 410
    assert response.json() == {"problem": "The token is too old. Load the page again."}
    settings.JOBQUEUE = {"PROGRESS_MAX_AGE": 26 * 3_600}
    assert visitor.get(asked).status_code == 200
    settings.JOBQUEUE = {"PROGRESS_MAX_AGE": None}
    assert visitor.get(asked).status_code == 200


def test_a_key_that_was_rotated_is_still_good(visitor: Client, settings: Any) -> None:
    asked = address(token(running()))
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "new"
    assert visitor.get(asked).status_code == 200


def test_a_job_that_is_not_kept_is_not_there(visitor: Client) -> None:
    assert visitor.get(address(token(uuid4()))).status_code == 404


def test_no_cache_keeps_an_answer(visitor: Client) -> None:
    for asked in (address(token(running())), address("x")):
        assert "no-store" in visitor.get(asked).headers["Cache-Control"]


def test_it_is_only_read(visitor: Client) -> None:
    asked = address(token(running()))
    assert visitor.head(asked).status_code == 200
    for method in (visitor.post, visitor.put, visitor.delete):
        assert method(asked).status_code == 405


def test_words_are_in_the_language_of_the_visitor(
    visitor: Client, settings: Any
) -> None:
    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE,
        "django.middleware.locale.LocaleMiddleware",
    ]
    id = running()
    told(id, done=1, total=2)
    with translation.override(None):  # the middleware leaves the language as it is
        response = visitor.get(address(token(id)), headers={"Accept-Language": "de"})
    assert response.json()["text"] == "1 von 2 (50 %)"


def _token_of(id: UUID, *, hours: int) -> str:
    """A token that was made some hours ago."""
    signer = TimestampSigner(salt=SALT, key=settings.SECRET_KEY)
    made = timezone.now() - timedelta(hours=hours)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("django.core.signing.time.time", made.timestamp)
        return signer.sign(id.hex)
