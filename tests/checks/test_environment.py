"""Settings that are given by variables of the environment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from django_jobqueue.checks.project_settings import check_settings
from django_jobqueue.conf import Conf, conf
from django_jobqueue.conf.alert_channels import CONDITIONS, ChannelConfig
from django_jobqueue.conf.endpoints import Endpoint
from tests.checks.messages import only
from tests.support.tables import differing

# One text for each setting that a test of all of them may use, and what it means.
TEXTS: dict[str, tuple[str, Any]] = {
    "QUEUE_WEIGHTS": ("high=5,default=3", {"high": 5, "default": 3}),
    "HTTP_THROTTLE": ("600/m", (600, 60)),
    "DATABASE": ("jobs", "jobs"),
    "MODULES": ("jobs,tasks", ["jobs", "tasks"]),
    "MODE": ("on_commit", "on_commit"),
    "QUEUES": ("mail,default", ["mail", "default"]),
    "EMBEDDED": ("false", False),
    "LISTEN": ("true", True),
    "SCHEDULES": ("False", False),
    "CAPTURE": ("language", ("language",)),
    "MIDDLEWARE": ("a.b,c.d", ["a.b", "c.d"]),
    "RELEASE": ("1.2.3", "1.2.3"),
    "PROJECT_ROOTS": ("/srv/site,/srv/shop", ["/srv/site", "/srv/shop"]),
    "DUMP_DIR": ("/var/lib/jobs", "/var/lib/jobs"),
    "ALERT_FAILED": ("7", 7),
    "HEARTBEAT_FILE": ("/run/jobs/beat", "/run/jobs/beat"),
    "LOG_FORMAT": ("json", "json"),
    "METRICS_HOST": ("0.0.0.0", "0.0.0.0"),  # noqa: S104
    "METRICS_QUEUES": ("tenant-*=tenant,b=c", {"tenant-*": "tenant", "b": "c"}),
    "METRICS_EXCLUDE": ("jobqueue_table_*,a", ["jobqueue_table_*", "a"]),
    "METRICS_TOKENS": (
        "0123456789abcdef,x1234567890abcde",
        ["0123456789abcdef", "x1234567890abcde"],
    ),
    "METRICS_ALLOW": ("10.0.0.0/8,::1", (ip_network("10.0.0.0/8"), ip_network("::1"))),
    "METRICS_ENQUEUED": ("true", True),
    "HTTP_AUTH": ("a.b,c.d", ["a.b", "c.d"]),
    "HTTP_MAX_BODY": ("2MB", 2 << 20),
    "HTTP_REQUIRE_TLS": ("false", False),
    "ALERTS": (
        '[{"to": "mail"}]',
        (ChannelConfig(to="mail", name="mail", on=frozenset(CONDITIONS)),),
    ),
    "ENDPOINTS": (
        '{"a": {"url": "https://x.example/", "secrets": []}}',
        {"a": Endpoint(name="a", url="https://x.example", secrets=())},
    ),
    "HEARTBEAT_URL": ("https://x.example/a", "https://x.example/a"),
    "SITE_URL": ("https://x.example", "https://x.example"),
    "TRACE_RELATION": ("link", "link"),
    "TRACE_BAGGAGE": ("true", True),
    "TRACKER_URL": ("https://x.example/?t={title}", "https://x.example/?t={title}"),
    "TRACKER_ISSUE_URL": ("https://x.example/{id}", "https://x.example/{id}"),
    "TRACKER_ISSUE_PATTERN": ("J-[0-9]+", re.compile("J-[0-9]+")),
    "LOG_SUCCESSES": ("true", True),
    "MAX_MEMORY": ("1.5 GB", 3 << 29),
}


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The environment; whatever was read of it is forgotten before and after."""
    with override_settings(JOBQUEUE={}):
        yield monkeypatch
        monkeypatch.undo()


def reread(**jobqueue: Any) -> override_settings:
    """These settings in force, and the environment read again."""
    return override_settings(JOBQUEUE=jobqueue)


def test_every_setting_has_a_variable(environ: pytest.MonkeyPatch) -> None:
    texts = {
        **TEXTS,
        "RETENTION_COUNT": ("failed=60", {**conf.retention_count, "failed": 60}),
        "RETENTION": ("failed=60", {**conf.retention, "failed": 60.0}),
    }
    rows = []
    for name, setting in Conf.settings.items():
        text, value = texts.get(name, ("256", 256))
        environ.setenv(f"JOBQUEUE_{name}", text)
        rows.append((name.lower(), value))
        assert setting.problem(setting.parse(text)) is None, name
    with reread():
        assert differing(rows, lambda name: getattr(conf, name)) == []


def test_a_variable_wins_over_the_dict_and_a_flag_over_both(
    environ: pytest.MonkeyPatch,
) -> None:
    environ.setenv("JOBQUEUE_LEASE", "20")
    with reread(LEASE=30, GRACE=5):
        assert (conf.lease, conf.grace) == (20, 5)
        with conf.override({"LEASE": 40.0}):
            assert conf.lease == 40
        assert conf.lease == 20
    environ.setenv("JOBQUEUE_RETENTION", "failed=none")
    with reread(RETENTION={"succeeded": 60}):  # other statuses are as the dict has them
        assert (conf.retention["failed"], conf.retention["succeeded"]) == (None, 60)
    environ.setenv("JOBQUEUE_THREADS", "")
    environ.setenv("JOBQUEUE_TIMEOUT", "none")
    with reread(THREADS=7, TIMEOUT=3):
        assert (conf.threads, conf.timeout) == (7, None)
        assert check_settings(None) == []


def test_a_wrong_variable_does_not_count_and_is_reported(
    environ: pytest.MonkeyPatch,
) -> None:
    wrong = [
        ("LEASE", "soon", "must be a number of seconds, not 'soon'"),
        ("LEASE", "1", "must be at least 2, not 1.0"),
        ("THREADS", "1.5", "must be a whole number, not '1.5'"),
        ("LISTEN", "maybe", "must be True or False, not 'maybe'"),
        ("RETENTION", "eternal=1", "must be a dict of seconds"),
        ("MODE", "fast", "must be queue, immediate or on_commit, not 'fast'"),
    ]

    def said(name: str, text: str) -> str:
        with environ.context() as variables:
            variables.setenv(f"JOBQUEUE_{name}", text)
            with reread():
                assert getattr(conf, name.lower()) == Conf.settings[name].default
                message = only(check_settings(None), "E003")
        return message.removeprefix(f"The environment variable JOBQUEUE_{name} ")

    assert differing(wrong, said, str.startswith) == []


def test_w016_a_mistyped_variable_is_reported_and_other_names_are_not(
    environ: pytest.MonkeyPatch,
) -> None:
    environ.setenv("JOBQUEUE_PROCESES", "4")
    environ.setenv("JOBQUEUE_OUR_OWN", "x")
    with reread():
        only(check_settings(None), "W016", "Did you mean JOBQUEUE_PROCESSES?")
    environ.setenv("JOBQUEUE_PROCESSES", "many")
    with reread(), pytest.raises(CommandError, match="JOBQUEUE_PROCESSES must be"):
        call_command("runworkers", "--drain", skip_checks=False)


def test_a_weight_that_is_none_is_refused_with_an_example() -> None:
    setting = Conf.settings["QUEUE_WEIGHTS"]
    for text in ("high=0", "high=x", "high", "high=1,high=2", "=3"):
        problem = setting.problem(setting.parse(text))
        assert problem is not None
        assert "from 1 to 1,000 by queue, such as" in problem
        assert "high=5,default=3" in problem
