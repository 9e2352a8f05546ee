"""``migrate``: job types are declared at its end, but by no older schema."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connection

from django_jobqueue.models import JobType

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_schema_can_go_back_to_an_older_one_and_forth_again() -> None:
    JobType.objects.all().delete()
    try:
        call_command("migrate", "jobqueue", "0002", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM jobqueue_jobtype")
            assert cursor.fetchone() == (0,)
    finally:
        call_command("migrate", "jobqueue", verbosity=0)
    row = JobType.objects.get(name="tests.sample.index")
    assert row.unique_by == "document"
