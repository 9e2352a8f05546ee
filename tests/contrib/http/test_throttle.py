"""Too many requests of one caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import override_settings

from django_jobqueue.contrib.http import throttle
from django_jobqueue.contrib.http.token_operations import create_token
from tests.contrib.http.conftest import Program, problem
from tests.contrib.http.test_callers import basic

pytestmark = pytest.mark.django_db
NOW = 1_790_000_045.0  # 5 s into a minute


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The time, which stands still."""
    now = [NOW]
    monkeypatch.setattr(throttle.time, "time", lambda: now[0])
    cache.clear()
    yield now
    cache.clear()


def test_each_caller_may_send_so_many_requests(
    program: Callable[..., Program], clock: list[float]
) -> None:
    first, second = program(), program()
    with override_settings(JOBQUEUE={"HTTP_THROTTLE": "3/m"}):
        assert [first.send("GET", "/jobs").status_code for _ in range(3)] == [200] * 3
        answer: Any = first.send("GET", "/jobs")
        problem(answer, 429, "too_many_requests")
        left = 60 - NOW % 60
        assert int(answer["Retry-After"]) == left
        assert second.send("GET", "/jobs").status_code == 200
        clock[0] += left
        assert first.send("GET", "/jobs").status_code == 200


def test_without_the_setting_the_cache_is_not_used(
    program: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "cache", None)
    assert program().send("GET", "/jobs").status_code == 200


def test_whoever_has_no_credentials_is_not_counted(clock: list[float]) -> None:
    with override_settings(JOBQUEUE={"HTTP_THROTTLE": "1/m"}):
        for _ in range(3):
            answer: Any = Program().send("GET", "/jobs")
            problem(answer, 401, "missing_authentication")


def test_an_address_may_send_so_many_wrong_credentials(
    program: Callable[..., Program], clock: list[float]
) -> None:
    right, wrong = program(), Program("jq_1_" + "x" * 40)
    with override_settings(JOBQUEUE={"HTTP_THROTTLE": "3/m"}):
        for _ in range(3):
            answer: Any = wrong.send("GET", "/jobs")
            problem(answer, 401, "invalid_token")
        answer = wrong.send("GET", "/jobs")
        problem(answer, 429, "too_many_requests")
        assert right.send("GET", "/jobs").status_code == 200  # through the same proxy
        elsewhere: Any = wrong.send("GET", "/jobs", REMOTE_ADDR="192.0.2.7")
        problem(elsewhere, 429, "too_many_requests")  # no header says the address


def test_wrong_names_and_secrets_are_counted_like_wrong_tokens(
    clock: list[float],
) -> None:
    """A name that there is, one that there is not, and what is none of them; also where
    a worker registers."""
    made = create_token("ann", "work")
    auth = override_settings(
        JOBQUEUE={
            "HTTP_AUTH": ["django_jobqueue.contrib.http.auth.Basic"],
            "HTTP_THROTTLE": "3/m",
        }
    )
    secret = made.text.split("_", 2)[2]
    nobody = Program()
    node = {"name": "node", "job_types": ["x"]}
    with auth:
        for given in (basic("ann", "x"), basic("bert", secret), "Basic !"):
            refused: Any = nobody.send("POST", "/workers", node, Authorization=given)
            problem(refused, 403, "incorrect_password")
        for given in (basic("ann", "x"), basic("bert", "x"), "Basic !"):
            refused = nobody.send("POST", "/workers", node, Authorization=given)
            problem(refused, 429, "too_many_requests")
        right = {"Authorization": basic("ann", secret)}
        assert nobody.send("POST", "/workers/1/claim", **right).status_code == 404
