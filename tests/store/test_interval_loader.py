"""Intervals are read in whatever style a database, a role or a session asks for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.datetime import IntervalLoader

from django_jobqueue.store.interval_loader import read_each_style

STYLES = ("postgres", "postgres_verbose", "iso_8601", "sql_standard")
PARTS = ("years", "months", "weeks", "days", "hours", "mins")

pytestmark = pytest.mark.django_db


def read(parts: dict[str, float], style: str) -> timedelta:
    """The interval as it is read; as an argument the style would change its signs."""
    made = ", ".join(f"{name} => {number}" for name, number in parts.items())
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL intervalstyle = {style}")
        read_each_style(connection)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT make_interval({made})")
        (value,) = cursor.fetchone()
        assert isinstance(value, timedelta)
        return value


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.dictionaries(st.sampled_from(PARTS), st.integers(-99, 99)),
    st.integers(-99_999_999, 99_999_999),
)
def test_each_style_says_the_same(parts: dict[str, float], micros: int) -> None:
    raw = connection.connection
    try:
        found = {
            style: read({**parts, "secs": micros / 1_000_000}, style)
            for style in STYLES
        }
    finally:
        raw.adapters.register_loader("interval", IntervalLoader)
    assert len(set(found.values())) == 1, found
