"""``migrate``: job types are declared at its end, but not where there are no tables."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connection

from django_jobqueue.models import JobType

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
        call_command("migrate", "jobqueue", verbosity=0)
    assert made() == before
    row = JobType.objects.get(name="tests.sample.index")
    assert row.unique_by == "document"
