"""Windows end now and begin at a whole span."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django_jobqueue.stats.time_window import DAY, HOUR, WEEK, WINDOWS

NOW = datetime(2026, 11, 21, 19, 48, 20, tzinfo=UTC)


def test_a_window_begins_at_a_whole_span_and_its_last_span_goes_on() -> None:
    assert [window.start(NOW) for window in (HOUR, DAY, WEEK)] == [
        datetime(2026, 11, 21, 18, 49, tzinfo=UTC),
        datetime(2026, 11, 20, 20, 0, tzinfo=UTC),
        datetime(2026, 11, 14, 21, 0, tzinfo=UTC),
    ]
    for window in WINDOWS.values():
        spans = window.length // window.step
        last = window.start(NOW) + (spans - 1) * window.step
        assert last <= NOW < last + window.step
        assert window.length % window.trend_step == timedelta(0)
        assert window.trend_step % window.step == timedelta(0)
    assert [window.fresh for window in (HOUR, DAY, WEEK)] == [3.0, 60.0, 420.0]
