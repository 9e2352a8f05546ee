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


def archive_indexes() -> dict[str, str]:
    """The definitions of the archive's indexes that are valid, by name."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid)"
            "  FROM pg_index"
            " WHERE indrelid = 'jobqueue_archivedjob'::regclass AND indisvalid"
        )
        return dict(cursor.fetchall())


def test_the_archive_s_indexes_are_replaced_and_an_interruption_does_no_harm() -> None:
    made = archive_indexes()
    try:
        call_command("migrate", "jobqueue", "0003", verbosity=0)
        before = archive_indexes()
        with connection.cursor() as cursor:
            cursor.execute(
                "CREATE INDEX jobqueue_a_newest_made ON jobqueue_archivedjob (queue)"
            )
            cursor.execute("DROP INDEX jobqueue_a_type")
    finally:
        call_command("migrate", "jobqueue", verbosity=0)
    assert "finished_at DESC, id DESC" in before["jobqueue_a_newest"]
    assert before.keys() == made.keys()
    assert archive_indexes() == made
    assert not any("DESC" in definition for definition in made.values())
