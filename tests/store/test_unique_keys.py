"""Unique keys: which calls are the same. The database says so."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any
from uuid import UUID

import pytest

from django_jobqueue.domain import unique_keys
from django_jobqueue.domain.arguments import Parameters
from django_jobqueue.domain.job_options import policy_of
from django_jobqueue.domain.registry import Declaration
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue import insert_unique
from django_jobqueue.store.queue.new_job import NewJob

pytestmark = pytest.mark.django_db


class Language(StrEnum):
    ENGLISH = "en"


def send(order_id: int, language: str = Language.ENGLISH, copy: Any = ()) -> None: ...


def send_anything(order_id: int, **rest: Any) -> None: ...


def declared(function: Any = send, name: str = "shop.send", **options: Any) -> Any:
    return Declaration(
        name=name,
        function=function,
        policy=policy_of("shop", options),
        parameters=Parameters.of(function, takes_context=False),
    )


def key_of(declaration: Declaration, data: dict[str, Any]) -> UUID:
    rule = unique_keys.rule_of(declaration)
    assert rule is not None
    new = NewJob(job_type=declaration.name, unique_rule=rule.json)
    (key,) = insert_unique.keys(DjangoDatabase(), new, [json.dumps(data)])
    return key


def same(one: dict[str, Any], other: dict[str, Any], **kwargs: Any) -> bool:
    declaration = declared(**kwargs)
    keys = [key_of(declaration, data) for data in (one, other)]
    return keys[0] == keys[1]


def test_a_default_is_the_same_as_its_value() -> None:
    assert same({"order_id": 1}, {"order_id": 1, "language": "en"}, unique=True)
    assert same({"order_id": 1}, {"order_id": 1, "copy": []}, unique=True)
    assert not same({"order_id": 1}, {"order_id": 1, "language": "de"}, unique=True)


def test_the_order_of_keys_makes_no_difference() -> None:
    one = {"order_id": 1, "copy": {"a": 1, "b": [1, {"c": 2, "d": 3}]}}
    other = {"copy": {"b": [1, {"d": 3, "c": 2}], "a": 1}, "order_id": 1}
    assert same(one, other, unique=True)
    assert not same(one, {**one, "copy": {"a": 1, "b": [2]}}, unique=True)


def test_only_the_parameters_that_are_named_count() -> None:
    by = {"unique": ("order_id",)}
    assert same({"order_id": 1, "language": "de"}, {"order_id": 1}, **by)
    assert not same({"order_id": 2}, {"order_id": 1}, **by)
    assert same({"order_id": 1}, {"language": "en", "order_id": 2}, unique=["language"])


def test_values_of_other_kinds_are_others() -> None:
    values = [1, None, True, "1", 1.5, [1], {"a": 1}]
    keys = [key_of(declared(unique=True), {"order_id": value}) for value in values]
    assert len({*keys}) == len(values)


def test_job_types_and_texts_have_keys_of_their_own() -> None:
    data = {"order_id": 1}
    keys = {
        key_of(declared(unique=True), data),
        key_of(declared(unique=True, name="shop.other"), data),
        unique_keys.key_of_text("shop.send", '{"order_id":1}'),
        unique_keys.key_of_text("shop.other", '{"order_id":1}'),
        unique_keys.key_of_text("shop.other", ""),
    }
    assert len(keys) == 5


def test_a_default_that_is_no_json_is_the_same_in_each_process() -> None:
    def one(a: int, how: Any = object()) -> None: ...  # noqa: B008

    def another(a: int, how: Any = object()) -> None: ...  # noqa: B008

    keys = [
        key_of(declared(function, unique=True), {"a": 1}) for function in (one, another)
    ]
    assert keys[0] == keys[1]


def test_a_handler_that_takes_anything_may_be_unique_by_anything() -> None:
    assert not same(
        {"order_id": 1, "x": 1},
        {"order_id": 1, "x": 2},
        function=send_anything,
        unique=("x",),
    )
    unique_keys.check(declared(send_anything, unique=("x",)), "shop.send")
