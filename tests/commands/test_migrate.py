"""``migrate``: job types are declared at its end, but not where there are no tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from django_jobqueue.models import JobType
from tests.sample import jobs

pytestmark = pytest.mark.django_db(transaction=True)

OURS = """
SELECT 'relation ' || relname FROM pg_class
  WHERE relname LIKE 'jobqueue%' AND pg_table_is_visible(oid)
 UNION ALL SELECT 'function ' || proname FROM pg_proc WHERE proname LIKE 'jobqueue%'
 UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE tgname LIKE 'jobqueue%'
"""


def made() -> set[str]:
    """The tables, indexes, functions and triggers that are ours."""
    with connection.cursor() as cursor:
        cursor.execute(OURS)
        return {name for (name,) in cursor.fetchall()}


def test_the_schema_can_be_taken_away_and_made_again() -> None:
    before = made()
    try:
        call_command("migrate", "jobqueue", "zero", verbosity=0)
        assert made() == set()
    finally:
        call_command("migrate", verbosity=0)
    assert made() == before
    row = JobType.objects.get(name="tests.sample.index")
    assert row.unique_by == "document"


# All that a schema has, as text: of a table its columns, storage, indexes, constraints
# and triggers, and the functions.
SCHEMA = """
SELECT 'table ' || concat_ws(' ', relname, relkind, relpersistence, reloptions::text)
  FROM pg_class WHERE relnamespace = {0} AND relname LIKE 'jobqueue%%'
 UNION ALL
SELECT 'column ' || concat_ws(' ', relname, attname, attnotnull, attidentity,
                              format_type(atttypid, atttypmod),
                              (SELECT collname FROM pg_collation AS used
                                WHERE used.oid = attcollation),
                              pg_get_expr(adbin, adrelid))
  FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
  LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
 WHERE relnamespace = {0} AND relname LIKE 'jobqueue%%' AND relkind = 'r' AND attnum > 0
 UNION ALL
SELECT 'index ' || indexdef FROM pg_indexes
 WHERE schemaname::regnamespace = {0} AND tablename LIKE 'jobqueue%%'
 UNION ALL
SELECT 'constraint ' || conname || ' ' || pg_get_constraintdef(oid)
  FROM pg_constraint
 WHERE connamespace = {0} AND conrelid::regclass::text LIKE '%%jobqueue%%'
 UNION ALL
SELECT 'trigger ' || pg_get_triggerdef(pg_trigger.oid)
  FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
 WHERE relnamespace = {0} AND tgname LIKE 'jobqueue%%'
 UNION ALL
SELECT 'function ' || pg_get_functiondef(oid)
  FROM pg_proc WHERE pronamespace = {0} AND proname LIKE 'jobqueue%%'
"""


class NoMigrations:
    """What pytest-django puts in place of MIGRATION_MODULES."""

    def __contains__(self, app: str) -> bool:
        return True

    def __getitem__(self, app: str) -> None:
        return None


@contextmanager
def bare_schema() -> Iterator[None]:
    """The connection leads to an empty schema meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA bare")
    before = connection.settings_dict["OPTIONS"]
    connection.settings_dict["OPTIONS"] = {**before, "options": "-c search_path=bare"}
    connection.close()
    try:
        yield
    finally:
        connection.settings_dict["OPTIONS"] = before
        connection.close()
        with connection.cursor() as cursor:
            cursor.execute("DROP SCHEMA bare CASCADE")


def schema(name: str) -> Counter[str]:
    """What is in the schema, without its own name, and with no names that Django makes
    of those of other models."""
    with connection.cursor() as cursor:
        cursor.execute(SCHEMA.format(f"'{name}'::regnamespace"), [])
        rows = [text for (text,) in cursor.fetchall()]
    named = re.compile(rf"\b{name}\.|(?<=search_path TO '){name}(?=')")
    return Counter(named.sub("", text) for text in rows)


def test_without_migrations_the_schema_is_the_same(settings: Any) -> None:
    """``pytest --no-migrations``, and ``TEST = {"MIGRATE": False}``."""
    migrated = schema("public")
    settings.MIGRATION_MODULES = NoMigrations()
    with bare_schema():
        for _ in "12":  # Django sends its signals after each flush, too
            call_command("migrate", run_syncdb=True, verbosity=0)
        made = schema("bare")
        assert jobs.add.enqueue(1).is_new
    assert len(made) > 500
    assert sorted(made - migrated) == sorted(migrated - made) == []
