"""Fields of Celery's crontabs as rules here."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from django_jobqueue.contrib.importing.celery_crontab import cron_of


@pytest.mark.parametrize(
    ("field", "text", "values"),
    [
        ("minute", "58-1", [58, 59, 0, 1]),
        ("hour", "22-1", [22, 23, 0, 1]),
        ("day_of_month", "30-2", [30, 31, 1, 2]),
        ("month_of_year", "nov-2", [11, 12, 1, 2]),
        ("day_of_week", "fri-sun", [5, 6, 0]),
    ],
)
def test_a_range_wraps_around_at_the_ends_of_its_field(
    field: str, text: str, values: list[int]
) -> None:
    written = ",".join(map(str, values))
    wrapped, listed = (cron_of({field: each}, "UTC") for each in (text, written))
    assert wrapped.text == listed.text
    assert wrapped.next_after(datetime(2026, 1, 1, tzinfo=UTC))
