"""Indexes on the data of archived jobs: made where declared, dropped where not, and
used by searches that find the same jobs without them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction

from django_jobqueue import job
from django_jobqueue.admin.lists.selected import indexed_part, matching
from django_jobqueue.host.maintenance.data_index_builder import DataIndexBuilder
from django_jobqueue.models import ArchivedJob, JobType
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.store import data_indexes
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.data_indexes import DataIndex

FILL = """
INSERT INTO jobqueue_archivedjob (job_type, status, data)
SELECT %(job_type)s, 'succeeded', jsonb_build_object('order_id', n %% 500)
  FROM generate_series(1, 5000) AS n
"""
SHIP = "shop.it's 100 %.ship"
ODD = 'a "key"'


def declare(*paths: str, name: str = SHIP) -> None:
    """Say of a job type what its code would."""
    JobType.objects.update_or_create(
        name=name, defaults={"queue": "default", "indexed": list(paths)}
    )


def build(*, drops: bool = False) -> None:
    """Look once, and wait until it is done."""
    builder = DataIndexBuilder()
    builder.check(DjangoDatabase(), drops=drops)
    builder.wait(60)


def names() -> set[str]:
    """The indexes that are there."""
    rows = DjangoDatabase().fetch(data_indexes.EXISTING)
    return {name for name, is_valid, _making in rows if is_valid}


@pytest.fixture(autouse=True)
def dropped(own: OwnConnection) -> Iterator[None]:
    """No test leaves an index."""
    yield
    for name, _is_valid, _making in own.fetch(data_indexes.EXISTING):
        with connection.cursor() as cursor:
            cursor.execute(data_indexes.DROP.format(name=name))


def archived(data: Any, name: str = SHIP) -> ArchivedJob:
    """A finished job with these data."""
    return ArchivedJob.objects.create(job_type_id=name, status="succeeded", data=data)


def found(value: Any, *path: str) -> set[Any]:
    """The data of the jobs of the type that are found."""
    chosen = Selection(
        Table.ARCHIVED, (Term("type", SHIP), Term("data", value, path=path))
    )
    rows = matching(ArchivedJob.objects.all(), chosen)
    return {json.dumps(row.data, sort_keys=True) for row in rows}


def test_an_index_is_made_where_one_is_declared_and_dropped_later() -> None:
    declare("order_id", "customer.id", ODD)
    build()
    declared = {
        DataIndex(SHIP, path).name
        for path in (("order_id",), ("customer", "id"), (ODD,))
    }
    assert names() == declared
    declare("order_id")
    build()
    assert names() == declared  # old code may still run
    build(drops=True)
    assert names() == {DataIndex(SHIP, ("order_id",)).name}


def test_an_index_that_was_interrupted_is_made_again() -> None:
    declare("order_id")
    build()
    name = DataIndex(SHIP, ("order_id",)).name
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass",
            [name],
        )
    assert names() == set()
    build()  # drops the broken one
    build()
    assert names() == {name}


def test_nothing_waits_while_an_index_is_made(other: OwnConnection) -> None:
    """Another transaction that writes to the archive delays the index, and is not
    delayed itself."""
    declare("order_id")
    builder = DataIndexBuilder()
    with transaction.atomic():
        archived({"order_id": 1})
        builder.check(other, drops=False)
        builder.wait(0.5)
        assert names() == set()
        archived({"order_id": 2})
    archived({"order_id": 3})
    builder.wait(60)
    assert names() == {DataIndex(SHIP, ("order_id",)).name}


def test_the_same_jobs_are_found_with_and_without_an_index() -> None:
    for data in (
        *({"k": k} for k in (4711, "4711", 4711.0, 47, "anna", "Anna", True, None)),
        *({"k": k} for k in ("x" * 300, "x" * 299, 7.5, "true", [4711], {"b": 9})),
        *({"a": {"b": 9}}, {"a": 9}, [], 7, {ODD: "50 %'s"}, {ODD: 1}),
    ):
        archived(data)
        archived(data, "shop.other")
    numbers = [{"k": 4711}, {"k": "4711"}, {"k": 4711.0}]
    for indexed in ([], ["k", "a.b", ODD]):
        declare(*indexed)
        build()
        for value, path, expected in [
            (4711, ("k",), numbers),
            ("4711", ("k",), numbers),
            ("anna", ("k",), [{"k": "anna"}]),
            ("x" * 300, ("k",), [{"k": "x" * 300}]),
            (True, ("k",), [{"k": True}]),
            (None, ("k",), [{"k": None}]),
            (7.5, ("k",), [{"k": 7.5}]),
            (9, ("a", "b"), [{"a": {"b": 9}}]),
            ("50 %'s", (ODD,), [{ODD: "50 %'s"}]),
            ("nobody", ("k",), []),
        ]:
            assert found(value, *path) == {json.dumps(data) for data in expected}


def test_the_index_is_used_and_nothing_is_left_out() -> None:
    DjangoDatabase().run(FILL, {"job_type": SHIP})
    declare("order_id")
    build()
    chosen = Selection(
        Table.ARCHIVED, (Term("type", SHIP), Term("data", 7, path=("order_id",)))
    )
    assert indexed_part(chosen) == chosen  # no window
    rows = matching(ArchivedJob.objects.order_by("-finished_at", "-id"), chosen)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE jobqueue_archivedjob")
    plan = rows.explain()
    assert DataIndex(SHIP, ("order_id",)).name in plan
    assert len(rows) == 10


def test_long_data_are_archived_whatever_is_indexed() -> None:
    declare("order_id")
    build()
    assert archived({"order_id": "ä" * 1_000_000}).pk
    assert archived({"order_id": {"deep": ["x" * 100_000]}}).pk


def test_what_plain_sql_wrote_into_the_column_harms_nothing() -> None:
    for junk in ({"a": 1}, "order_id", 7, [1, None, "", ["x"]]):
        JobType.objects.update_or_create(
            name=SHIP, defaults={"queue": "default", "indexed": junk}
        )
        build()
        assert names() == set()


def test_a_key_that_cannot_be_is_refused() -> None:
    def ship(order_id: int) -> None: ...

    must = "must be a tuple of keys of the data"
    for indexed in ("order_id", ["order_id", 7], [""], ["a..b"], ["x" * 101]):
        with pytest.raises(ImproperlyConfigured, match=must):
            job(name="shop.refused", indexed=indexed)(ship)
    with pytest.raises(ImproperlyConfigured, match="names 'order', which is no param"):
        job(name="shop.refused", indexed=["order"])(ship)
