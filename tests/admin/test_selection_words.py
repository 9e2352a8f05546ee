"""Selections as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from django.utils import translation

from django_jobqueue.admin.parts.selection_words import in_words, phrases
from django_jobqueue.search.selection import FIELDS, Selection, Table, Term, ValueType
from django_jobqueue.text.redaction import MASK

MOMENT = datetime(2026, 11, 21, 10, tzinfo=UTC)
ID = UUID(int=7)
VALUES: dict[ValueType, Any] = {
    ValueType.TEXT: "some",
    ValueType.NUMBER: 3,
    ValueType.MOMENT: MOMENT,
    ValueType.MILLISECONDS: 20_200,
    ValueType.ID: ID,
    ValueType.IDS: (ID,),
    ValueType.TEXTS: ("failed", "expired"),
    ValueType.FLAG: True,
    ValueType.JSON: 7,
}


@pytest.fixture(autouse=True)
def _english() -> Any:
    with translation.override("en"):
        yield


def test_a_term_in_words() -> None:
    for term, words in (
        (Term("status", "failed"), "status: failed"),
        (Term("type", "shop.charge"), "type: shop.charge"),
        (Term("attempts", 3, ">="), "attempts at least 3"),
        (Term("finished", MOMENT, "<"), "finished before 2026-11-21 10:00:00 UTC"),
        (Term("finished", MOMENT, ">="), "finished from 2026-11-21 10:00:00 UTC on"),
        (Term("ran", 20_200, ">"), "ran above 20.2 s"),
        (Term("replayed", False), "not replayed"),
        (Term("id", (ID,)), f"id: {ID}"),
        (Term("statuses", ("failed", "expired")), "status: failed / status: expired"),
        (Term("queues", ("a", "b-*")), "queue: a / queue: b-*"),
        (Term("types", ("shop.*",)), "type: shop.*"),
        (Term("id", (ID,) * 5), "5 jobs by their ids"),
        (Term("data", "x", path=("order", "note")), 'data.order.note: "x"'),
        (Term("data", "x", path=("user", "password")), 'data.user.password: "••••"'),
        (Term("tag", "a\u202eb"), "tag: a\\u202eb"),
        (Term("by", "token=abc123 Bearer abcdefgh12"), "enqueued by: token=abc123 "),
    ):
        (said,) = phrases(Selection(Table.ARCHIVED, (term,)), sensitive=list)
        assert said.startswith(words)


def test_what_is_searched_for_in_data_and_messages_is_masked_for_others() -> None:
    """Who sees the list of bulk operations may not see data."""
    terms = (Term("data", "anna", path=("user",)), Term("text", "anna"))
    said = in_words(Selection(Table.ARCHIVED, terms))
    assert "anna" not in said
    assert said.count(MASK) == 2


def test_everything_that_can_be_selected_by_has_words() -> None:
    for table, field in product(Table, FIELDS.values()):
        if table not in field.tables:
            continue
        value = "ready" if field.name == "state" else VALUES[field.value_type]
        path = ("order",) if field.value_type is ValueType.JSON else ()
        for operator in field.operators:
            term = Term(field.name, value, operator, path)
            (said,) = phrases(Selection(table, (term,)))
            assert said, field.name


def test_a_selection_in_words() -> None:
    failed = Selection(
        Table.ARCHIVED, (Term("status", "failed"), Term("replayed", True))
    )
    assert in_words(failed) == "status: failed · replayed"
    assert in_words(Selection(Table.ARCHIVED)) == "all archived jobs"
    assert in_words(Selection(Table.QUEUED)) == "all queued jobs"
    assert in_words(failed.none()) == "no jobs, because a filter is invalid"
