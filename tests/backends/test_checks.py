"""What is wrong with TASKS is told by the system checks."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks
from django.test import override_settings

from django_jobqueue.backends import JobQueueBackend
from django_jobqueue.backends.compat import task_backends
from tests.support.commands import ROOT
from tests.support.tables import differing

BACKEND = "django_jobqueue.backends.JobQueueBackend"
BEFORE_THE_REGISTRY = """
import sys
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["django_jobqueue"],
    USE_TZ=True,
    TASKS={"default": {"BACKEND": "django_jobqueue.backends.JobQueueBackend"}},
)
from django_jobqueue.backends import task
import __main__

@task(max_attempts=3)
def send(order_id: int) -> None: ...

assert send.using(priority=5, run_after=None).max_attempts == 3
from django.apps import apps
assert not apps.ready
assert "django_jobqueue.models" not in sys.modules
print("declared")
"""


def checked(**params: Any) -> list[CheckMessage]:
    with override_settings(TASKS={"default": {"BACKEND": BACKEND, **params}}):
        return list(task_backends["default"].check())


def test_nothing_is_wrong_with_good_options() -> None:
    options = {"max_attempts": 5, "backoff": "quartic", "timeout": 30}
    assert checked(OPTIONS=options, QUEUES=["mail"]) == []
    assert checked(MAX_ATTEMPTS=3, BACKOFF=lambda error, result: None) == []
    assert checked() == []


def test_without_the_app_there_is_one_error_that_names_it() -> None:
    with override_settings(INSTALLED_APPS=[]):
        (message,) = checked(OPTIONS={"wrong": 1})
    assert message.id == "jobqueue.E020"
    assert "'django_jobqueue'" in message.hint


MISTAKES: list[tuple[Any, tuple[str, str, str]]] = [
    ([1], ("E021", "must be a dict, not [1]", "max_attempts")),
    ({"max_attempt": 3}, ("E022", "['max_attempt'] is no", "'max_attempts'?")),
    ({"queue": "mail"}, ("E022", "['queue'] is no option", "unique")),
    ({"max_attempts": 0}, ("E023", "at least 1", "@job")),
    ({"backoff": "never"}, ("E023", "must be one of exponential", "@job")),
    (
        {"delivery": "at_most_once", "max_attempts": 3},
        ("E023", "TASKS['default']['OPTIONS']: delivery='at_most_once' allows", "@job"),
    ),
]


def test_each_mistake_has_an_id_and_a_hint() -> None:
    def ask(options: Any) -> CheckMessage:
        (message,) = checked(OPTIONS=options)
        return message

    def fits(message: CheckMessage, wanted: tuple[str, str, str]) -> bool:
        id, text, hint = wanted
        is_it = message.id == f"jobqueue.{id}"
        return is_it and text in message.msg and hint in str(message.hint)

    assert differing(MISTAKES, ask, fits) == []


def test_a_wrong_option_counts_as_not_given() -> None:
    options = {"max_attempts": 0, "timeout": 5}
    params = {"BACKEND": BACKEND, "OPTIONS": options}
    with override_settings(TASKS={"default": params}):
        assert task_backends["default"].policy_options == {"timeout": 5}
        assert "jobqueue.E023" in [message.id for message in run_checks()]


class Extended(JobQueueBackend):
    """A backend with an option of its own."""

    extra_options = frozenset({"prefix"})


def test_a_subclass_may_have_options_of_its_own() -> None:
    own = {"BACKEND": f"{__name__}.Extended", "OPTIONS": {"prefix": "x"}}
    assert checked(**own) == []


@pytest.mark.processes
def test_tasks_can_be_declared_before_the_app_registry_is_ready() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", BEFORE_THE_REGISTRY],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("declared\n", "")
