"""What was read is shown again for some seconds."""

from __future__ import annotations

import pytest

from django_jobqueue.stats.cached import CachedValue


def test_what_was_read_is_kept_by_its_name_and_what_cannot_be_read_is_not() -> None:
    kept: CachedValue[int] = CachedValue()
    numbers = iter(range(9))

    def read() -> int:
        return next(numbers)

    def fail() -> int:
        raise LookupError

    with pytest.raises(LookupError):
        kept.get("a", 60, fail)
    assert [kept.get("a", 60, read), kept.get("a", 60, read)] == [0, 0]
    assert kept.get("b", 60, read) == 1
    assert kept.get("a", 0, read) == 2
    kept.forget()
    assert kept.get("a", 60, read) == 3
