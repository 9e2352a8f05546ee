"""Checks of ENDPOINTS: mistakes are named, secrets are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.checks import CheckMessage
from django.test import override_settings

from django_jobqueue import remote_job
from django_jobqueue.checks.project_settings import check_settings
from django_jobqueue.conf import conf
from django_jobqueue.contrib.remote import checks
from django_jobqueue.domain.registry import registry
from tests.checks.messages import only
from tests.support.tables import differing

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
GOOD: dict[str, Any] = {"url": "https://x.example/s3cret/", "secrets": [SECRET]}


def found(value: Any, **others: Any) -> list[CheckMessage]:
    with override_settings(JOBQUEUE={"ENDPOINTS": value, **others}):
        return [*check_settings(None), *checks.check_endpoints(None)]


@pytest.fixture
def ship() -> Iterator[None]:
    remote_job("invoices.ship", endpoint="shipping")
    yield
    registry.remove("invoices.ship")


def test_right_entries_are_right() -> None:
    entries = {
        "shipping": GOOD,
        "b-2.x": {
            "url": "http://127.0.0.1:8000",
            "secrets": [],
            "auth": ["jobs", "s3:cret"],
            "connect_timeout": 1,
            "read_timeout": 30.5,
            "concurrency": None,
        },
    }
    assert found(entries) == []
    with override_settings(JOBQUEUE={"ENDPOINTS": entries}):
        shipping, other = conf.endpoints.values()
    assert (shipping.name, shipping.url) == ("shipping", "https://x.example/s3cret")
    assert (shipping.read_timeout, shipping.concurrency) == (6.5, 50)
    assert (other.auth, other.concurrency) == (("jobs", "s3:cret"), None)
    assert "s3" not in f"{shipping}{other}"


PROBLEMS: list[tuple[Any, str]] = [
    ([], "must be a dict of dicts, not a list"),
    ({"a b": GOOD}, "has the name 'a b'"),
    ({"a": "https://x.example/s3cret"}, "has in 'a' a str: it must be a dict"),
    ({"a": {"url": "https://x.example"}}, 'no "secrets": a list of whsec_…'),
    ({"a": {"secrets": []}}, 'no "url"'),
    ({"a": {**GOOD, "scret": 1}}, "did you mean 'secrets'?"),
    ({"a": {**GOOD, "url": "ftp://x.example"}}, "without http:// or https://"),
    ({"a": {**GOOD, "url": "https://u:p@x.example"}}, "a user in the address"),
    ({"a": {**GOOD, "url": "https://x.example/?s3cret"}}, "with ? or #"),
    ({"a": {**GOOD, "secrets": ["s3cret"]}}, "a secret that is not whsec_"),
    ({"a": {**GOOD, "auth": "jobs:s3cret"}}, "no pair of a user and a password"),
    ({"a": {**GOOD, "auth": ["a:b", "s3cret"]}}, "a user with a colon"),
    ({"a": {**GOOD, "read_timeout": 0}}, "0, no number of seconds up to 600,"),
    ({"a": {**GOOD, "connect_timeout": True}}, "no number of seconds"),
    ({"a": {**GOOD, "concurrency": 0}}, "0, no whole number of at least 1"),
]


def test_a_mistake_is_named_without_what_may_be_secret() -> None:
    def e003(value: Any) -> str:
        said = only(found(value), "E003")
        for secret in (SECRET, "s3cret", "u:p"):
            assert secret not in said
        return said

    assert differing(PROBLEMS, e003, str.__contains__) == []


@pytest.mark.usefixtures("ship")
def test_e060_e061_w060_what_job_types_of_endpoints_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = {"SITE_URL": "https://shop.example"}
    said = "remote_job('invoices.ship') names the endpoint 'shipping'"
    only(found({"shiping": GOOD}, **site), "E060", said, "Did you mean 'shiping'?")
    only(found({}, **site), "E060", "The endpoints are: none.")
    assert found({"shipping": GOOD}, **site) == []
    only(found({"shipping": GOOD}), "W060")
    monkeypatch.setattr(checks, "is_installed", lambda: False)
    install = 'pip install "django-jobqueue[remote]"'
    only(found({"shipping": GOOD}, **site), "E061", install)
