"""Whatever is enqueued comes back as it was given, or is refused."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from hypothesis import given, settings

from django_jobqueue import InvalidArguments
from django_jobqueue.domain.arguments import from_json, result_to_json, to_json
from tests.properties.values import json_values, objects, values

PLENTY = 10_000_000


def accepted(data: Any) -> str | None:
    """The text of data, or None if it is refused with an error of ours."""
    try:
        return to_json(data, limit=PLENTY)
    except InvalidArguments:
        return None


@settings(max_examples=200, deadline=None)
@given(json_values)
def test_what_json_has_comes_back_equal_or_is_refused(data: Any) -> None:
    text = accepted(data)
    if text is not None:
        assert from_json(text) == data


@settings(max_examples=300, deadline=None)
@given(values)
def test_what_json_does_not_have_is_refused(data: Any) -> None:
    text = accepted(data)
    if text is not None:
        assert from_json(text) == data


@settings(max_examples=100, deadline=None)
@given(objects)
def test_the_limit_is_kept_to_the_byte(data: dict[str, Any]) -> None:
    text = accepted(data)
    if text is None:
        return
    size = len(text.encode())
    assert to_json(data, limit=size) == text
    with pytest.raises(InvalidArguments):
        to_json(data, limit=size - 1)


@settings(max_examples=150, deadline=None)
@given(values)
def test_a_result_is_text_or_a_type_error(value: Any) -> None:
    try:
        text = result_to_json(value, limit=500)
    except TypeError:
        return
    from_json(text)
    assert len(text.encode()) <= 500


STORED = """
SELECT given.text::jsonb::text
  FROM unnest(%s::text[]) WITH ORDINALITY AS given (text, n)
 ORDER BY given.n
"""


@pytest.mark.django_db
def test_postgresql_returns_all_accepted_data_unchanged() -> None:
    data: list[Any] = []
    texts: list[str] = []

    @settings(max_examples=300, deadline=None)
    @given(json_values)
    def collect(value: Any) -> None:
        text = accepted(value)
        if text is not None:
            data.append(value)
            texts.append(text)

    collect()
    with connection.cursor() as cursor:
        cursor.execute(STORED, [texts])
        stored = [from_json(text) for (text,) in cursor.fetchall()]
    assert len(stored) > 100
    assert stored == data


@pytest.mark.django_db
def test_postgresql_takes_all_results_that_are_kept() -> None:
    texts: list[str] = []

    @settings(max_examples=150, deadline=None)
    @given(values)
    def collect(value: Any) -> None:
        try:
            texts.append(result_to_json(value, limit=65_536))
        except TypeError:
            return

    collect()
    with connection.cursor() as cursor:
        cursor.execute(STORED, [texts])
        stored = [from_json(text) for (text,) in cursor.fetchall()]
    assert len(stored) > 50
