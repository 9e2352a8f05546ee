"""Unique jobs: which calls are the same."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_jobqueue.domain import unique_keys
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.handler import job
from tests.support.tables import differing


def send(order_id: int, language: str = "en", copy: Any = ()) -> None: ...


def test_a_parameter_that_there_is_not_is_refused_when_it_is_declared() -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        job(name="words.unique", unique=("oder_id",))(send)
    assert str(caught.value) == (
        f"@job on {__name__}.send: unique names 'oder_id', which is no parameter. Did "
        "you mean 'order_id'?"
    )
    assert registry.get("words.unique") is None


def test_what_they_are_unique_by_is_said_in_words() -> None:
    words: list[tuple[Any, str]] = [(True, "data"), (("a", "b"), "a, b"), (False, "")]
    assert differing(words, unique_keys.described) == []
