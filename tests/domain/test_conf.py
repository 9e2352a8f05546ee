"""The settings: each with a default that is valid, read live, flags first."""

from __future__ import annotations

import math
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import override_settings

from django_jobqueue.conf import DAY, Conf, Setting, conf
from tests.support.tables import differing


@override_settings(JOBQUEUE={})
def test_every_setting_is_described_and_has_a_right_default() -> None:
    for name, setting in Conf.settings.items():
        assert setting.problem(setting.default) is None, name
        assert setting.help.endswith("."), name
        assert setting.described_as, name
        assert getattr(conf, name.lower()) == setting.convert(setting.default)
        assert getattr(Conf, name.lower()) is setting
    assert isinstance(Conf.lease, Setting)
    assert Conf.lease.name == "LEASE"
    flags = {name: setting.flag for name, setting in Conf.settings.items()}
    assert (flags["LEASE"], flags["MAX_DATA_BYTES"]) == ("--lease", "--max-data-bytes")
    assert len(set(flags.values())) == len(flags)
    assert all(flag and flag == flag.lower() for flag in flags.values())


def test_a_flag_wins_over_the_setting_and_the_setting_over_the_default() -> None:
    own = Conf()
    with override_settings(JOBQUEUE={"LEASE": 7, "THREADS": 2}):
        assert own.lease == 7
        own.override({"LEASE": 9})
        assert (own.lease, own.threads, own.processes) == (9, 2, 1)
    with override_settings(JOBQUEUE={"LEASE": 8}):
        assert (own.lease, own.threads) == (9, 4)
        own.override({"LEASE": 10, "THREADS": 1})
        own.override({"LEASE": 11})
        assert (own.lease, own.threads) == (11, 1)
    with override_settings(JOBQUEUE={"RETENTION": {"failed": None, "expired": 5}}):
        kept = {"succeeded": 7 * DAY, "failed": None, "expired": 5}
        assert conf.retention == {**kept, "cancelled": 30 * DAY}


RETENTION = (
    "must be a dict of seconds (or None, forever) by status: succeeded, failed, "
    "expired, cancelled, not "
)
SECONDS, WHOLE = "must be a number of seconds, not", "must be a whole number, not"
LIST, BOOL = "must be a list of strings, not", "must be True or False, not"
WRONG: list[tuple[str, Any, str]] = [
    *(("LEASE", v, f"{SECONDS} {v!r}") for v in ("15", True, None, math.nan)),
    ("LEASE", 1.9, "must be at least 2, not 1.9"),
    ("LEASE", math.inf, "must be at most 3,153,600,000, not inf"),
    ("TIMEOUT", 1e300, "must be at most 3,153,600,000, not 1e+300"),
    ("MODE", "eager", "must be queue, immediate or on_commit, not 'eager'"),
    ("POLL_INTERVAL", 0, "must be at least 0.05, not 0"),
    ("THREADS", 2.0, f"{WHOLE} 2.0"),
    ("THREADS", -1, "must be at least 0, not -1"),
    ("PROCESSES", 0, "must be at least 1, not 0"),
    ("MAX_ATTEMPTS", 0, "must be at least 1, not 0"),
    ("MAX_ATTEMPTS", 2**31, "must be at most 2,147,483,647, not 2147483648"),
    ("MAX_DATA_BYTES", 1, "must be at least 2, not 1"),
    ("DATABASE", b"default", "must be a string, not b'default'"),
    ("RELEASE", None, "must be a string, not None"),
    ("RELEASE", "v" * 101, "must have at most 100 characters, not 101"),
    ("MODULES", "jobs", f"{LIST} 'jobs'"),
    *(("QUEUES", v, f"{LIST} {v}") for v in (["a", 5], ["a", ""])),
    *(("LISTEN", value, f"{BOOL} {value!r}") for value in (1, "no")),
    *(("RETENTION", v, f"{RETENTION}{v}") for v in (5, {"done": 5})),
    *(
        ("RETENTION", {"failed": kept}, f"{RETENTION}{{'failed': {kept!r}}}")
        for kept in (-1, "1d", math.nan, math.inf, True)
    ),
    ("PROJECT_ROOTS", ["shop"], "must be a list of absolute paths, not ['shop']"),
]


RIGHT: list[tuple[str, Any, None]] = [
    *(("LEASE", value, None) for value in (2, 15.5)),
    *((name, None, None) for name in ("MAX_ATTEMPTS", "TIMEOUT", "LISTEN", "QUEUES")),
    *(("LISTEN", False, None), ("QUEUES", ("a", "b"), None), ("THREADS", 0, None)),
    *(("RETENTION", v, None) for v in ({}, {"failed": None, "succeeded": 0})),
    ("PROJECT_ROOTS", ["/srv/shop"], None),
    ("DUMP_DIR", "/srv/" + "d" * 200, None),
]


def test_a_wrong_value_is_told_in_words_and_a_right_one_accepted() -> None:
    def problem(name: str, value: Any) -> str | None:
        return Conf.settings[name].problem(value)

    assert differing([*WRONG, *RIGHT], problem) == []


def test_what_is_of_another_kind_counts_as_not_given() -> None:
    with override_settings():
        del django_settings.JOBQUEUE
        assert Conf().lease == 15.0
    for given in (None, 5, "LEASE", ["LEASE"], {"LEASE": "7"}, {5: 5}):
        with override_settings(JOBQUEUE=given):
            assert conf.lease == 15.0


def test_an_override_ends_with_its_block_or_is_for_good() -> None:
    with override_settings(JOBQUEUE={"LEASE": 7.0}):
        with conf.override({"LEASE": 8.0}):
            assert conf.lease == 8.0
            with conf.override({"LEASE": 9.0, "THREADS": 2}):
                assert (conf.lease, conf.threads) == (9.0, 2)
            assert (conf.lease, conf.threads) == (8.0, 4)
        assert conf.lease == 7.0
    with pytest.raises(ZeroDivisionError), conf.override({"LEASE": 8.0}):
        raise ZeroDivisionError
    assert conf.lease == 15.0
    with conf.override({}):
        conf.override({"LEASE": 8.0})
        with override_settings(JOBQUEUE={"LEASE": 7.0}):
            assert conf.lease == 8.0
    assert conf.lease == 15.0
