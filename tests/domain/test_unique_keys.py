"""Unique jobs: which calls are the same."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_jobqueue.domain import unique_keys
from django_jobqueue.domain.arguments import Parameters
from django_jobqueue.domain.job_options import policy_of
from django_jobqueue.domain.registry import Declaration, registry
from django_jobqueue.enqueueing.handler import job


def send(order_id: int, language: str = "en", copy: Any = ()) -> None: ...


def declared(function: Any = send, name: str = "shop.send", **options: Any) -> Any:
    return Declaration(
        name=name,
        function=function,
        policy=policy_of("shop", options),
        parameters=Parameters.of(function, takes_context=False),
    )


def test_a_parameter_that_there_is_not_is_refused_when_it_is_declared() -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        job(name="words.unique", unique=("oder_id",))(send)
    assert str(caught.value) == (
        f"@job on {__name__}.send: unique names 'oder_id', which is no parameter. Did "
        "you mean 'order_id'?"
    )
    assert registry.get("words.unique") is None


@pytest.mark.parametrize(
    ("given", "text"), [(True, "data"), (("a", "b"), "a, b"), (False, "")]
)
def test_what_they_are_unique_by_is_said_in_words(given: Any, text: str) -> None:
    assert unique_keys.described(given) == text
