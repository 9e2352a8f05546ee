"""The context: what a handler can know about its attempt."""

from __future__ import annotations

import time

import pytest

from django_jobqueue import Cancel
from tests.domain.made import context


def test_a_handler_knows_its_deadline_and_whether_it_is_cancelled() -> None:
    assert context().seconds_left is None  # without a timeout
    assert context(deadline=time.monotonic() - 60).seconds_left == 0.0
    found = context(deadline=time.monotonic() + 3_600)
    first, second = found.seconds_left, found.seconds_left
    assert first is not None
    assert second is not None
    assert 0 < second <= first <= 3_600
    found = context()
    found.check_cancelled()
    assert found.cancelled is False
    found = context(_cancelled=True)
    assert found.cancelled is True
    with pytest.raises(Cancel, match="^the handler was asked to stop$"):
        found.check_cancelled()
    assert "_cancelled" not in repr(found)  # the worker's own mark


def test_two_contexts_are_never_the_same_attempt_and_have_no_other_attributes() -> None:
    one = context()
    with pytest.raises(AttributeError):
        one.note = "x"  # type: ignore[attr-defined]
    assert one == one  # noqa: PLR0124
    assert one != context(id=one.id)
