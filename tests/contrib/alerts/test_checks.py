"""Checks of ALERTS: mistakes are named, secrets are not."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.checks import CheckMessage
from django.test import override_settings

from django_jobqueue.checks.project_settings import check_settings
from django_jobqueue.conf import conf
from django_jobqueue.conf.alert_channels import CONDITIONS
from django_jobqueue.contrib.alerts.checks import check_alerts
from django_jobqueue.domain.states import AlertCondition
from tests.checks.messages import only
from tests.support.tables import differing

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HOOK = {"to": "webhook", "url": "https://x.example/s3cret", "secrets": [SECRET]}


def found(alerts: Any, **others: Any) -> list[CheckMessage]:
    with override_settings(JOBQUEUE={"ALERTS": alerts, **others}):
        return [*check_settings(None), *check_alerts(None)]


def test_right_entries_are_right() -> None:
    entries = [
        {"to": "mail", "addresses": ["ops@shop.example"], "name": "ops"},
        HOOK,
        {**HOOK, "secrets": SECRET, "name": "pager", "on": ["regression"]},
        {"to": "slack", "url": "http://127.0.0.1:8000/x"},
        {"to": "tests.contrib.alerts.conftest.take"},
        {"to": "tests.contrib.alerts.conftest.take"},
    ]
    assert found(entries) == []
    with override_settings(JOBQUEUE={"ALERTS": entries}):
        assert [channel.name for channel in conf.alerts] == [
            "ops",
            "webhook",
            "pager",
            "slack",
            "tests.contrib.alerts.conftest.take",
            "tests.contrib.alerts.conftest.take 2",
        ]
    assert list(CONDITIONS) == AlertCondition.values


PROBLEMS: list[tuple[Any, str]] = [
    ("mail", "must be a list of dicts, not a str"),
    (["mail"], "entry 1 a str: it must be a dict"),
    ([HOOK, {}], 'entry 2 no "to"'),
    ([{"to": "slak"}], "'slak' for 'to'"),
    ([{"to": "slak"}], "did you mean 'slack'?"),
    ([{"to": "mail", "adresses": []}], "did you mean 'addresses'?"),
    ([{"to": "mail", "addresses": "a@b.example"}], "no list of mail addresses"),
    ([{"to": "mail", "on": ["regresion"]}], "did you mean 'regression'?"),
    ([{"to": "mail", "on": []}], "no list of conditions"),
    ([{"to": "mail", "name": "a\nb"}], "no printable text"),
    ([{"to": "slack"}], "no 'url', which slack needs"),
    ([{"to": "webhook", "url": "https://x.example"}], "no 'secrets'"),
    ([{**HOOK, "url": "ftp://x.example"}], "without http:// or https://"),
    ([{**HOOK, "url": "https://u:p@x.example"}], "a user in the address"),
    ([{**HOOK, "url": "https://x.example:99999"}], "no address"),
    ([{**HOOK, "secrets": ["s3cret"]}], "a secret that is not whsec_"),
    ([{**HOOK, "secrets": ["whsec_s3cret!"]}], "a secret that is not whsec_"),
    ([{**HOOK, "secrets": ["whsec_czNjcmV0"]}], "24 to 64 bytes"),
    ([{"to": "mail", "name": "a"}, {**HOOK, "name": "a"}], "the name 'a'"),
]


def e003(alerts: Any, **others: Any) -> str:
    """The only mistake, which repeats nothing that may be secret."""
    said = only(found(alerts, **others), "E003")
    for secret in (SECRET, "s3cret", "czNjcmV0", "u:p"):
        assert secret not in said
    return said


def test_a_mistake_is_named_without_what_may_be_secret() -> None:
    assert differing(PROBLEMS, e003, str.__contains__) == []
    for name in ("SITE_URL", "HEARTBEAT_URL"):
        assert name in e003([], **{name: "shop.example/s3cret"})


def test_e040_w040_w041_channels_that_reach_nobody_are_told() -> None:
    hint = "Did you mean 'tests.contrib.alerts.conftest.take'?"
    only(found([{"to": "tests.contrib.alerts.conftest.tak"}]), "E040", hint)
    only(found([{"to": "nowhere.at.all"}]), "E040")
    only(
        found([{"to": "tests.contrib.alerts.conftest.SECRET"}]),
        "E040",
        "cannot be called",
    )
    with override_settings(ADMINS=[]):
        only(found([{"to": "mail"}]), "W040")
    assert "s3cret" not in only(found([{**HOOK, "secrets": []}]), "W041")


def test_the_environment_has_it_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBQUEUE_ALERTS", '[{"to": "mail", "on": ["regression"]}]')
    with override_settings(JOBQUEUE={}):
        assert [channel.on for channel in conf.alerts] == [frozenset({"regression"})]
    monkeypatch.setenv("JOBQUEUE_ALERTS", '[{"to": "s3cret')
    with override_settings(JOBQUEUE={}):
        (message,) = check_settings(None)
        assert "s3cret" not in message.msg
        assert conf.alerts == ()
