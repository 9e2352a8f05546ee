"""Arrays as text: PostgreSQL reads what was meant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.prepared import (
    array_of_ids,
    array_of_moments,
    array_of_numbers,
    array_of_texts,
)
from django_jobqueue.store.queue.lanes import START

TEXTS = ["plain", "", "NULL", 'a "b"', "back\\slash", "{a,b}", " é 日本 ", "\n\t"]
MOMENTS = [
    START[0],
    datetime(2026, 11, 22, 3, 4, 5, 678_901, tzinfo=UTC),
    datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=45))),
]
IDS = [UUID(int=0), UUID(int=1), UUID("ffffffff-ffff-7fff-bfff-ffffffffffff")]
NUMBERS = [0, -100, 2**62]


def test_values_arrive_as_they_are(own: OwnConnection) -> None:
    arrived = {
        kind: own.fetch(f"SELECT %(array)s::{kind}[]", {"array": text})[0][0]
        for kind, text in {
            "text": array_of_texts(TEXTS),
            "timestamptz": array_of_moments(MOMENTS),
            "uuid": array_of_ids(IDS),
            "bigint": array_of_numbers(NUMBERS),
        }.items()
    }
    assert list(arrived.values()) == [TEXTS, MOMENTS, IDS, NUMBERS]
    empty = {"texts": array_of_texts([]), "ids": array_of_ids([])}
    both = "SELECT %(texts)s::text[], %(ids)s::uuid[]"
    assert own.fetch(both, empty) == [([], [])]
