"""Limits by key that several job types share."""

from __future__ import annotations

from typing import Any

from django_jobqueue import PerKey, Rate, job
from django_jobqueue.checks.key_limits import check_shared_limits
from django_jobqueue.domain.registry import registry
from tests.support.tables import differing


def charge(account: str) -> None: ...


def refund(account: str) -> None: ...


def test_e026_job_types_that_share_a_limit_state_the_same() -> None:
    limits: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"concurrency": 4}, {"concurrency": 4}, ""),
        ({"concurrency": 4}, {"concurrency": 5}, "4 of charge"),
        ({"rate": Rate(10, per=1)}, {"rate": Rate(20, per=1)}, "10/1s burst 1 of char"),
        (
            {"concurrency": 1, "strict": True},
            {"concurrency": 1, "strict": False},
            "1 in strict order of charge",
        ),
    ]

    def said(*both: dict[str, Any]) -> str:
        for function, limit in zip((charge, refund), both, strict=True):
            per_key = PerKey("account", name="stripe", **limit)
            registry.remove(function.__name__)
            job(name=function.__name__, per_key=per_key)(function)
        messages = list(check_shared_limits(None))
        assert {message.id for message in messages} <= {"jobqueue.E026"}
        return " ".join(message.msg for message in messages) or "nothing"

    rows = [(*both, part or "nothing") for *both, part in limits]
    try:
        assert differing(rows, said, str.__contains__) == []
    finally:
        for function in (charge, refund):
            registry.remove(function.__name__)
