"""The metrics of the cluster as a page of the site: who may read them, and how."""

from __future__ import annotations

import gzip
import sys
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import OperationalError
from django.test import Client, override_settings
from django.urls import path, reverse
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from django_jobqueue.exceptions import MetricsExtraMissing
from django_jobqueue.metrics.catalogue import cluster
from django_jobqueue.metrics.exposition import Exposition
from django_jobqueue.monitoring import views
from django_jobqueue.store.connection import DjangoDatabase
from tests.commands.conftest import jobqueue
from tests.store.rows import ADD, make_many
from tests.support.tables import differing

TOKEN, OTHER = "0123456789abcdef", "fedcba9876543210"
URL = "/jobqueue/metrics"

ALLOWED = override_settings(JOBQUEUE={"METRICS_ALLOW": ["127.0.0.1"]})
WITHOUT_USERS = override_settings(
    ROOT_URLCONF=__name__,
    MIDDLEWARE=[],
    INSTALLED_APPS=["django_jobqueue", "django.contrib.contenttypes"],
)
pytestmark = pytest.mark.django_db
urlpatterns = [path("metrics", views.metrics)]  # for a project without users


WITH_TOKEN, LOCAL = {"METRICS_TOKENS": [TOKEN]}, {"METRICS_ALLOW": ["127.0.0.0/8"]}
OPENED: list[tuple[dict[str, Any], dict[str, str], int]] = [
    ({}, {}, 403),
    ({}, {"Authorization": "Bearer "}, 403),
    (WITH_TOKEN, {}, 403),
    (WITH_TOKEN, {"Authorization": f"Bearer {TOKEN}"}, 200),
    (WITH_TOKEN, {"Authorization": f"bearer  {TOKEN}"}, 200),
    (WITH_TOKEN, {"Authorization": f"Bearer {OTHER}"}, 403),
    (WITH_TOKEN, {"Authorization": f"Bearer {TOKEN}0"}, 403),
    (WITH_TOKEN, {"Authorization": "Bearer é"}, 403),
    (WITH_TOKEN, {"Authorization": f"Basic {TOKEN}"}, 403),
    ({"METRICS_TOKENS": [OTHER, TOKEN]}, {"Authorization": f"Bearer {TOKEN}"}, 200),
    (LOCAL, {}, 200),
    ({"METRICS_ALLOW": ["10.0.0.0/8", "127.0.0.1"]}, {}, 200),
    ({"METRICS_ALLOW": ["10.0.0.0/8"]}, {}, 403),
    (LOCAL, {"REMOTE_ADDR": "::ffff:127.0.0.1"}, 200),
    (LOCAL, {"REMOTE_ADDR": ""}, 403),
    (LOCAL, {"REMOTE_ADDR": "unix:"}, 403),
    (LOCAL, {"X-Forwarded-For": "127.0.0.1"}, 403),
    ({"METRICS_ALLOW": ["10.0.0.0/8"]}, {"X-Forwarded-For": "10.1.1.1"}, 403),
]


def test_a_token_or_an_address_opens_it() -> None:
    def status(settings: dict[str, Any], sent: dict[str, str]) -> int:
        meta = {name: sent[name] for name in sent if name == "REMOTE_ADDR"}
        headers = {"Accept-Language": "de", **sent}
        with override_settings(JOBQUEUE=settings):
            response = Client().get(URL, headers=headers, **meta)  # type: ignore[arg-type]
        assert "no-store" in response["Cache-Control"]
        return response.status_code

    assert differing(OPENED, status) == []
    with ALLOWED:
        for method in ("head", "post", "put", "delete", "options"):
            response = getattr(Client(), method)(URL)
            assert response.status_code == (200 if method == "head" else 405)


def test_the_right_to_see_the_overview_opens_it_and_no_other_does() -> None:
    assert reverse("jobqueue_monitoring:metrics") == URL
    user = get_user_model().objects.create_user("bert", is_staff=True)
    client = Client()
    client.force_login(user)
    assert client.get(URL).status_code == 403
    for codename, status in (("view_queuedjob", 403), ("view_overview", 200)):
        user.user_permissions.add(Permission.objects.get(codename=codename))
        assert client.get(URL).status_code == status
    user.is_active = False
    user.save()
    assert client.get(URL).status_code == 403
    with WITHOUT_USERS:  # a project without users has tokens and addresses
        assert Client().get("/metrics").status_code == 403
        with ALLOWED:
            assert Client().get("/metrics").status_code == 200


@ALLOWED
def test_the_answer_has_the_format_that_is_asked_for() -> None:
    openmetrics = "application/openmetrics-text; version=1.0.0"
    formats: dict[str, Any] = {"": parse_text, openmetrics: parse_openmetrics}
    for accept, parse in formats.items():
        sent = {"Accept": accept, "Accept-Encoding": "gzip"}
        response = Client().get(URL, headers=sent)
        assert response["Content-Encoding"] == "gzip"
        text = gzip.decompress(response.content).decode()
        names = {family.name for family in parse(text)}
        assert names <= {name.removesuffix("_total") for name in cluster()}
        assert "jobqueue_database_up" in names


BEHIND_LOGIN = override_settings(
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.auth.middleware.LoginRequiredMiddleware",
    ]
)


def lost(*args: Any) -> Any:
    raise OperationalError("connection refused")


@ALLOWED
def test_nobody_has_to_log_in_and_an_outage_of_the_database_is_a_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with BEHIND_LOGIN:
        assert Client().get(URL).status_code == 200
    monkeypatch.setattr(DjangoDatabase, "fetch", lost)
    response = Client().get(URL)
    assert response.status_code == 200
    assert b"\njobqueue_database_up 0.0\n" in response.content
    assert jobqueue("metrics").out == response.content.decode()


@ALLOWED
def test_without_the_extra_the_answer_is_the_line_of_pip(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    views._exposition.cache_clear()  # private: else what was imported before is used
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MetricsExtraMissing, match=r"pip install.*\[metrics\]"):
        Exposition()
    response = Client().get(URL)
    assert response.status_code == 501
    assert b'pip install "django-jobqueue[metrics]"' in response.content


def test_the_wanted_slots_of_a_queue_are_answered_for_autoscalers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = reverse("jobqueue_monitoring:scale")
    client = Client()
    assert client.get(url, {"queue": "mail"}).status_code == 403
    make_many(3, ADD, queue="mail")
    with ALLOWED:
        for queue, slots in (("mail", 3), ("nobody's", 0)):
            answer = client.get(url, {"queue": queue})
            content = answer.json()
            assert (content["queue"], content["wanted_slots"]) == (queue, slots)
            assert "no-store" in answer["Cache-Control"]
        for wrong in ({}, {"queue": ""}, {"queue": "a\0"}):
            assert client.get(url, wrong).status_code == 400
        monkeypatch.setattr(DjangoDatabase, "fetch", lost)
        assert client.get(url, {"queue": "mail"}).status_code == 503
