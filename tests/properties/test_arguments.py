"""Whatever is enqueued comes back as it was given, or is refused."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from django.db import connection
from hypothesis import given

from django_jobqueue import InvalidArguments
from django_jobqueue.domain.arguments import from_json, result_to_json, to_json
from tests.properties.values import json_values, values

PLENTY = 10_000_000


def accepted(data: Any) -> str | None:
    """The text of data, or None if it is refused with an error of ours."""
    try:
        return to_json(data, limit=PLENTY)
    except InvalidArguments:
        return None


@given(json_values)
def test_what_json_has_comes_back_equal_or_is_refused(data: Any) -> None:
    """And the limit is kept to the byte."""
    text = accepted(data)
    if text is None:
        return
    assert from_json(text) == data
    size = len(text.encode())
    assert to_json(data, limit=size) == text
    with pytest.raises(InvalidArguments):
        to_json(data, limit=size - 1)


@given(values)
def test_what_json_does_not_have_is_refused(data: Any) -> None:
    text = accepted(data)
    if text is not None:
        assert from_json(text) == data


@given(values)
def test_a_result_is_text_or_a_type_error(value: Any) -> None:
    with contextlib.suppress(TypeError):
        text = result_to_json(value, limit=500)
        from_json(text)
        assert len(text.encode()) <= 500


STORED = """
SELECT given.text::jsonb::text
  FROM unnest(%s::text[]) WITH ORDINALITY AS given (text, n)
 ORDER BY given.n
"""


def stored(texts: list[str]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(STORED, [texts])
        return [from_json(text) for (text,) in cursor.fetchall()]


@pytest.mark.dear
@pytest.mark.django_db
def test_postgresql_returns_all_that_is_accepted_unchanged() -> None:
    data: list[Any] = []
    texts: list[str] = []
    results: list[str] = []

    @given(json_values)
    def collect(value: Any) -> None:
        text = accepted(value)
        if text is not None:
            data.append(value)
            texts.append(text)

    @given(values)
    def collect_results(value: Any) -> None:
        with contextlib.suppress(TypeError):
            results.append(result_to_json(value, limit=65_536))

    collect()
    collect_results()
    assert stored(texts) == data
    assert len(stored(results)) == len(results)
    assert min(len(data), len(results)) > 10
