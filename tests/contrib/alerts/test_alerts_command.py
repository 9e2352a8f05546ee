"""``jobqueue alerts``: the list, and the test of the channels."""

from __future__ import annotations

import pytest
from django.core.management.base import CommandError
from django.test import override_settings

from django_jobqueue.contrib.alerts.models import Alert
from tests.commands.conftest import jobqueue, refusal
from tests.contrib.alerts.conftest import SECRET, TEST_CALLABLE, alerts_to

pytestmark = pytest.mark.django_db

REFUSES = "tests.contrib.alerts.conftest.refuse"


def make(text: str, **columns: str) -> Alert:
    return Alert.objects.create(condition="regression", text=text, **columns)


def test_the_list_has_firing_alerts_first() -> None:
    make("Queue mail was slow.", state="resolved")
    make("Queue mail is slow.", subject="mail")
    with alerts_to():
        said = jobqueue("alerts")
        firing = jobqueue("alerts --firing --format json").json

    lines = said.out.splitlines()
    assert lines[0].split() == ["Fired", "State", "Condition", "Alert"]
    assert "firing" in lines[1]
    assert lines[1].endswith("Queue mail is slow.")
    assert lines[2].endswith("Queue mail was slow.")
    assert [(one["subject"], one["state"]) for one in firing] == [("mail", "firing")]
    assert said.err == ""


def test_an_empty_list_says_so_and_whether_alerts_are_off() -> None:
    said = jobqueue("alerts")
    assert said.out == "There is no alert.\n"
    assert "Alerts are off" in said.err


def test_a_test_reaches_each_channel_or_one() -> None:
    with alerts_to({"to": TEST_CALLABLE}, {"to": TEST_CALLABLE, "name": "b"}) as sent:
        said = jobqueue("alerts --test")
        assert said.out == f"{TEST_CALLABLE}: accepted\nb: accepted\n"
        jobqueue("alerts --test --channel b")

    assert [one.type for one in sent] == ["jobqueue.test"] * 3
    assert sent[0].title == "This is a test of the alerts of the job queue."


def test_a_test_that_a_channel_does_not_accept_is_an_error() -> None:
    with (
        alerts_to({"to": REFUSES}, {"to": TEST_CALLABLE}),
        pytest.raises(CommandError, match=f"Not accepted by {REFUSES}"),
    ):
        jobqueue("alerts --test")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--test", "--channel", "takr"], "Did you mean 'taker'?"),
        (["--channel", "taker"], "--channel works only with --test"),
        (["--limit", "0"], "at least 1"),
    ],
)
def test_mistakes_are_named(arguments: list[str], problem: str) -> None:
    entry = {"to": TEST_CALLABLE, "name": "taker"}
    with alerts_to(entry), pytest.raises(CommandError) as raised:
        jobqueue("alerts", *arguments)
    assert problem in str(raised.value)


def test_a_test_without_channels_is_an_error() -> None:
    assert "has no channel" in refusal("alerts --test")


def test_a_new_secret_can_be_used() -> None:
    secret = jobqueue("alerts --new-secret").out.strip()
    hook = {"to": "webhook", "url": "https://x.example", "secrets": [secret]}
    assert secret != SECRET
    with override_settings(JOBQUEUE={"ALERTS": [hook]}):
        jobqueue("alerts")
