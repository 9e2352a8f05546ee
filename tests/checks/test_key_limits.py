"""Limits by key that several job types share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from django_jobqueue import PerKey, Rate, job
from django_jobqueue.checks.key_limits import check_shared_limits
from django_jobqueue.domain.registry import registry


def charge(account: str) -> None: ...


def refund(account: str) -> None: ...


@pytest.fixture
def _types_are_gone() -> Iterator[None]:
    yield
    for name in ("charge", "refund"):
        registry.remove(name)


@pytest.mark.usefixtures("_types_are_gone")
@pytest.mark.parametrize(("number", "ids"), [(4, []), (5, ["jobqueue.E026"])])
def test_e026_job_types_that_share_a_limit_state_one_number(
    number: int, ids: list[str]
) -> None:
    for function, concurrency in ((charge, 4), (refund, number)):
        per_key = PerKey("account", concurrency=concurrency, name="stripe")
        job(name=function.__name__, per_key=per_key)(function)

    assert [message.id for message in check_shared_limits(None)] == ids


@pytest.mark.usefixtures("_types_are_gone")
def test_job_types_that_share_a_limit_state_one_rate() -> None:
    for function, limit in ((charge, 10), (refund, 20)):
        per_key = PerKey("account", rate=Rate(limit, per=1), name="stripe")
        job(name=function.__name__, per_key=per_key)(function)

    (message,) = check_shared_limits(None)

    assert "10/1s burst 1 of charge" in message.msg


@pytest.mark.usefixtures("_types_are_gone")
def test_job_types_that_share_a_limit_agree_whether_its_order_is_strict() -> None:
    for function, strict in ((charge, True), (refund, False)):
        per_key = PerKey("account", concurrency=1, name="stripe", strict=strict)
        job(name=function.__name__, per_key=per_key)(function)

    (message,) = check_shared_limits(None)

    assert "1 in strict order of charge" in message.msg
