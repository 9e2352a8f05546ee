"""Who may call the HTTP API: tokens, names with secrets, users, and a project's own."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.http import HttpRequest
from django.test import Client, override_settings
from django.utils import timezone

from django_jobqueue.contrib.http import auth, token_scopes
from django_jobqueue.contrib.http.callers import identity_of
from django_jobqueue.contrib.http.models import Token
from django_jobqueue.contrib.http.token_operations import create_token, revoke_tokens
from django_jobqueue.contrib.http.token_scopes import parse_token
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob
from tests.admin.scene import archived_row, insert
from tests.contrib.http.conftest import ALL, V1, Program, problem
from tests.sample import jobs

BASIC = override_settings(
    JOBQUEUE={"HTTP_AUTH": ["django_jobqueue.contrib.http.auth.Basic"]}
)
USERS = override_settings(
    JOBQUEUE={
        "HTTP_AUTH": [
            "django_jobqueue.contrib.http.auth.Tokens",
            "django_jobqueue.contrib.http.auth.DjangoUser",
        ]
    }
)
BODY = {"data": {"a": 1}}
pytestmark = pytest.mark.django_db


def put(client: Program, **headers: str) -> Any:
    """Enqueue a job."""
    path = f"/jobs/tests.sample.add/job_{uuid4()}"
    return client.send("PUT", path, BODY, **headers)


def test_each_wrong_token_is_answered_alike(
    program: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str | None] = []
    right = token_scopes.is_right

    def noted(secret: str, stored: str | None) -> bool:
        compared.append(stored)
        return right(secret, stored)

    monkeypatch.setattr(auth, "is_right", noted)
    good = program("enqueue", expires_at=timezone.now() + timedelta(days=1))
    assert put(good).status_code == 202
    id, secret = parse_token(good.token) or (0, "")
    answers = {
        put(Program(text)).content.partition(b'"instance"')[0]
        for text in (
            f"jq_{id}_{secret[:-1]}x",
            f"jq_{id + 1}_{secret}",
            f"jq_{'9' * 18}_{secret}",
            f"jq_{'9' * 30}_{secret}",
            f"jq_0{id}_{secret}",
            f"jq_{id}_{secret}\x00",
            f"jq_{id}",
            "é" * 20,
            "x",
        )
    }
    assert len(answers) == 1
    assert len(compared) == 10  # whatever is wrong, one comparison

    Token.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    answers.add(put(good).content.partition(b'"instance"')[0])
    Token.objects.update(expires_at=None)
    assert put(good).status_code == 202
    assert revoke_tokens("program-0") == ["program-0"]
    answers.add(put(good).content.partition(b'"instance"')[0])
    assert len(answers) == 1
    sent = put(good)
    problem(sent, 401, "invalid_token")
    assert sent["WWW-Authenticate"] == 'Bearer error="invalid_token"'


def test_the_secret_is_stored_nowhere(program: Callable[..., Program]) -> None:
    _id, secret = parse_token(program().token) or (0, "")
    row = Token.objects.values().get()
    assert secret not in str(row)
    assert row["scopes"] == sorted(ALL)


def test_one_scope_or_pattern_is_taken_as_one_of_several() -> None:
    one = create_token("one", "read", job_types="shop.*", queues="q").row
    several = create_token("two", ["read"], job_types=["shop.*"], queues=["q"]).row
    assert one.grant == several.grant
    assert (one.grant.job_types, one.grant.queues) == (("shop.*",), ("q",))
    assert revoke_tokens("one") == ["one"]


def test_a_use_is_noted_once_an_hour(
    billing: Program, django_assert_num_queries: Any
) -> None:
    assert Token.objects.get().last_used_at is None
    put(billing)
    used = Token.objects.get().last_used_at
    assert used is not None
    assert (used.minute, used.second) == (0, 0)
    with django_assert_num_queries(1):  # the token's row, nothing else
        billing.send("PUT", "/jobs/x/7", BODY)


def test_scopes_and_patterns_bound_what_a_token_opens(
    program: Callable[..., Program],
) -> None:
    job = jobs.add.enqueue(a=1)
    path = f"/jobs/tests.sample.add/job_{job.id}"
    problem(program("enqueue").send("GET", path), 403, "forbidden")
    problem(put(program("read")), 403, "forbidden")
    assert "data" not in program("read").send("GET", path).json()
    shown = program("read-data").send("GET", path).json()
    assert shown["data"] == {"a": 1}

    other = program("enqueue", "read", job_types=["shop.*"])
    problem(put(other), 403, "forbidden")
    problem(other.send("GET", path), 403, "forbidden")
    problem(other.send("GET", f"/jobs/job_{job.id}"), 404, "job_not_found")
    near = problem(other.send("GET", "/jobs/shop.x"), 404, "job_type_not_found")
    assert "tests." not in near["detail"]
    elsewhere = program("read", queues=["mail"])
    problem(elsewhere.send("GET", path), 404, "job_not_found")
    fits = program("read", job_types=["tests.*"], queues=["def*"])
    assert fits.send("GET", path).status_code == 200


def test_secrets_are_masked_also_for_whom_may_read_data(
    program: Callable[..., Program],
) -> None:
    job = jobs.keep.enqueue(a={"password": "hunter2", "to": "ann"})
    shown = program("read-data").send("GET", f"/jobs/job_{job.id}")
    assert b"hunter2" not in shown.content
    assert shown.json()["data"]["a"]["to"] == "ann"


def basic(name: str, password: str) -> str:
    """The header of HTTP Basic."""
    pair = f"{name}:{password}".encode("utf-8", "surrogateescape")
    return "Basic " + base64.b64encode(pair).decode()


@BASIC
def test_basic_takes_the_name_of_a_token_and_its_secret() -> None:
    made = create_token("ann", "enqueue")
    nobody = Program()
    secret = made.text.split("_", 2)[2]
    for password in (secret, made.text):
        assert put(nobody, Authorization=basic("ann", password)).status_code == 202
    assert {job.enqueued_by for job in QueuedJob.objects.all()} == {"token ann"}
    wrong = [basic("ann", "x"), basic("bert", secret)]
    answers = {
        problem(put(nobody, Authorization=given), 403, "incorrect_password")["detail"]
        for given in wrong
    }
    assert len(answers) == 1  # it does not say which tokens there are
    for given in ("Basic", "Basic !", "Basic YQ==", "Basic /w==", basic("a\x00", "b")):
        problem(put(nobody, Authorization=given), 403, "incorrect_password")
    sent = put(nobody)
    problem(sent, 401, "missing_authentication")
    assert sent["WWW-Authenticate"] == 'Basic realm="jobqueue"'
    problem(put(Program(made.text)), 401, "missing_authentication")


@USERS
def test_callers_of_one_name_have_nothing_in_common() -> None:
    """A token, the next token of its name, and a user."""
    JobType.objects.create(name="fleet.resize")
    done = insert(ArchivedJob, archived_row())

    def worker_and_replay(client: Program) -> tuple[int, str]:
        node = {"name": "node", "job_types": ["fleet.resize"]}
        worker = client.send("POST", "/workers", node).json()["id"]  # type: ignore[attr-defined]
        replay = f"/jobs/job_{done}/replay"
        made = client.send("POST", replay, {}, Idempotency_Key="k")
        again = client.send("POST", replay, {}, Idempotency_Key="k")
        assert made.json()["id"] == again.json()["id"]  # type: ignore[attr-defined]
        return worker, made.json()["id"]  # type: ignore[attr-defined]

    first = Program(create_token("bob", ALL).text)
    worker, replay = worker_and_replay(first)
    revoke_tokens("bob")
    second, user = Program(create_token("bob", ALL).text), Program()
    user.force_login(User.objects.create_superuser("bob"))
    replays = {replay}
    for other in (second, user):
        stolen = other.send("POST", f"/workers/{worker}/claim")
        problem(stolen, 404, "worker_lost")
        replays.add(worker_and_replay(other)[1])
    assert len(replays) == 3


def test_a_caller_of_a_class_of_a_project_is_no_token_of_that_name() -> None:
    class TokenCaller(House):
        identity = "1"

    token = auth.TokenCaller("house", "1", (), (), frozenset())
    assert identity_of(TokenCaller()) != identity_of(token)
    assert identity_of(token) == identity_of(token._replace(name="other"))


@USERS
def test_a_user_has_the_permissions_of_the_admin_and_needs_a_csrf_token() -> None:
    user = User.objects.create_user("bert")
    client = Program()
    client.handler.enforce_csrf_checks = True
    client.force_login(user)
    job = jobs.add.enqueue(a=1)
    path = f"/jobs/job_{job.id}"
    problem(client.send("GET", path), 403, "forbidden")
    for codename in ("view_queuedjob", "enqueue_job"):
        user.user_permissions.add(Permission.objects.get(codename=codename))
    assert "data" not in client.send("GET", path).json()
    problem(put(client), 403, "csrf_failed")
    client.cookies["csrftoken"] = "a" * 32
    problem(put(client), 403, "csrf_failed")
    problem(put(client, X_CSRFToken="b" * 32), 403, "csrf_failed")
    same = {"X_CSRFToken": "a" * 32, "Referer": "https://testserver/page"}
    assert put(client, **same).status_code == 202
    problem(
        put(client, **{**same, "Referer": "https://x.example/"}), 403, "csrf_failed"
    )
    user.user_permissions.add(Permission.objects.get(codename="view_job_data"))
    assert client.send("GET", path).json()["data"] == {"a": 1}
    user.is_active = False
    user.save()
    problem(client.send("GET", path), 401, "missing_authentication")


class House:
    """An authorizer of a project: whoever is in the house may read."""

    challenge = ""
    name = identity = "house"
    job_types = queues = ()

    def authenticate(self, request: HttpRequest) -> House | None:
        """Whoever says so."""
        return self if request.headers.get("X-House") else None

    def may(self, scope: str, permission: str) -> bool:
        """Only read."""
        return scope == "read"


@override_settings(JOBQUEUE={"HTTP_AUTH": [f"{__name__}.House"]})
def test_a_project_may_know_callers_of_its_own() -> None:
    job = jobs.add.enqueue(a=1)
    path = f"/jobs/job_{job.id}"
    assert Program().send("GET", path, X_House="1").status_code == 200
    problem(Program().send("GET", path), 401, "missing_authentication")
    problem(put(Program(), X_House="1"), 403, "forbidden")


@override_settings(
    JOBQUEUE={"HTTP_AUTH": ["django_jobqueue.contrib.http.auth.DjangoUser"]}
)
def test_a_site_without_users_has_none_to_let_in() -> None:
    with override_settings(MIDDLEWARE=[]):
        sent: Any = Client().get(f"{V1}/jobs/x", secure=True)
    problem(sent, 401, "missing_authentication")


def test_nobody_needs_credentials_for_the_document() -> None:
    assert Client().get(f"{V1}/openapi.json", secure=True).status_code == 200
