"""Each column that can hold text is one that an erasure searches, or has a reason."""

from __future__ import annotations

from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.db import models

from django_jobqueue.domain.personal_value import Holds
from django_jobqueue.store.erasing.personal_columns import SOURCES
from tests.docs.pages import pages

PAGE = "docs/guides/personal-data.md"
CODE = "the code says so"
CHOICE = "one of a few words"
NAME = "a name from the code"
HOST = "of a machine or a process"
POLICY = "numbers and names of a policy"
COUNTS = "counts"
VIEW = "it can; the guide says that its owner deletes the view"

# Why other columns cannot hold a person's value. By the column; or by the table, too.
NEVER = {
    "act": CHOICE,
    "backoff": POLICY,
    "delivery": CHOICE,
    "end": CHOICE,
    "error_class": NAME,
    "kind": CHOICE,
    "missed": CHOICE,
    "origin": CHOICE,
    "outcome": CHOICE,
    "overlap": CHOICE,
    "queue": NAME,
    "release": NAME,
    "state": CHOICE,
    "status": CHOICE,
    "schedule": NAME,
    "job_type": NAME,
    "worker": HOST,
    "announced": CHOICE,
    "condition": CHOICE,
    "event": CHOICE,
    "pending": CHOICE,
    "jobqueue_alert.subject": "a name from the code, or a fingerprint",
    "jobqueue_alert.text": "numbers, and names from the code",
    "jobqueue_alertdelivery.channel": "a name from the settings",
    "jobqueue_alertdelivery.error": "the class of an error",
    "jobqueue_auditentry.verb": CHOICE,
    "jobqueue_bulkoperation.counted": "counts, names of job types and ids",
    "jobqueue_bulkoperation.cursor": "times and ids",
    "jobqueue_bulkoperation.horizon": "the number of a transaction",
    "jobqueue_bulkoperation.options": POLICY,
    "jobqueue_bulkoperation.skipped": COUNTS,
    "jobqueue_jobsearch.error": "the class of an error",
    "jobqueue_jobsearch.matched": COUNTS,
    "jobqueue_jobsearch.newest": "ids",
    "jobqueue_jobsearch.place": "times and ids",
    "jobqueue_erasure.changed": COUNTS,
    "jobqueue_erasure.counted": "counts, ids and names",
    "jobqueue_erasure.error": "the class of an error",
    "jobqueue_erasure.fingerprint": "a keyed hash",
    "jobqueue_erasure.key": "a key of data",
    "jobqueue_erasure.position": "keys of rows",
    "jobqueue_erasure.remaining": COUNTS,
    "jobqueue_erasure.value": "the value itself, until the erasure ends",
    "jobqueue_failuregroup.excused": "releases",
    "jobqueue_failuregroup.frame": CODE,
    "jobqueue_failuregroup.resolved_in": NAME,
    "jobqueue_jobtype.description": CODE,
    "jobqueue_jobtype.follower_arguments": CODE,
    "jobqueue_jobtype.followers": CODE,
    "jobqueue_jobtype.handler": CODE,
    "jobqueue_jobtype.indexed": CODE,
    "jobqueue_jobtype.limit_name": NAME,
    "jobqueue_jobtype.limit_rule": CODE,
    "jobqueue_jobtype.weight_rule": CODE,
    "jobqueue_jobtype.name": NAME,
    "jobqueue_jobtype.rate": POLICY,
    "jobqueue_jobtype.rate_override": POLICY,
    "jobqueue_jobtype.retry": POLICY,
    "jobqueue_jobtype.sensitive": CODE,
    "jobqueue_jobtype.summary": CODE,
    "jobqueue_jobtype.unique_by": CODE,
    "jobqueue_jobtype.unique_rule": CODE,
    "jobqueue_figures.figures": "counts, and names from the code",
    "jobqueue_figures.name": NAME,
    "jobqueue_host.applied": "a plan and numbers",
    "jobqueue_host.desired": "a plan and numbers",
    "jobqueue_host.error": "about a plan, or the last line of code that does not start",
    "jobqueue_host.host": HOST,
    "jobqueue_host.identity": HOST,
    "jobqueue_host.name": HOST,
    "jobqueue_host.queues": NAME,
    "jobqueue_token.digest": "a hash of a random text",
    "jobqueue_token.job_types": NAME,
    "jobqueue_token.name": "of a program",
    "jobqueue_token.queues": NAME,
    "jobqueue_token.scopes": CHOICE,
    "jobqueue_keylimit.name": NAME,
    "jobqueue_keylimit.rate": POLICY,
    "jobqueue_keylimit.rate_override": POLICY,
    "jobqueue_keyoverride.rate": POLICY,
    "jobqueue_bucket.limit_key": "gone an hour after the last start is forgotten",
    "jobqueue_lease.holder": HOST,
    "jobqueue_lease.host": HOST,
    "jobqueue_lease.name": NAME,
    "jobqueue_queue.name": NAME,
    "jobqueue_total.attempts_histogram": COUNTS,
    "jobqueue_total.run_histogram": COUNTS,
    "jobqueue_total.wait_histogram": COUNTS,
    "jobqueue_savedview.list": CHOICE,
    "jobqueue_savedview.name": VIEW,
    "jobqueue_savedview.owner": VIEW,
    "jobqueue_savedview.query": VIEW,
    "jobqueue_schedule.name": NAME,
    "jobqueue_schedule.planned_for": "a rule and a time zone",
    "jobqueue_schedule.rule": "a rule of times",
    "jobqueue_schedule.rule_override": "a rule of times",
    "jobqueue_schedule.time_zone": NAME,
    "jobqueue_schedule.time_zone_override": NAME,
    "jobqueue_worker.desired": CHOICE,
    "jobqueue_worker.host": HOST,
    "jobqueue_worker.identity": HOST,
    "jobqueue_worker.job_types": NAME,
    "jobqueue_worker.name": HOST,
    "jobqueue_worker.owner": "of a program, or the name of a user",
    "jobqueue_worker.queues": NAME,
    "jobqueue_worker.answers": "numbers, and errors of connections without their data",
    "jobqueue_worker.request": "times and numbers",
    "jobqueue_worker.rescued": COUNTS,
    "jobqueue_worker.stack_dump": "files and lines of code, without values",
    "jobqueue_worker.supervisor": HOST,
    "jobqueue_worker.versions": NAME,
    "django_admin_log.object_id": "the key of an object",
}
WITH_TEXT = (models.CharField, models.TextField, models.JSONField)
MODELS = (*apps.get_app_config("jobqueue").get_models(), LogEntry)


def with_text() -> set[tuple[str, str]]:
    """The table and the name of each column that can hold text."""
    return {
        (model._meta.db_table, field.column)
        for model in MODELS
        for field in model._meta.concrete_fields
        if isinstance(getattr(field, "target_field", field), WITH_TEXT)
    }


def searched() -> set[tuple[str, str]]:
    """Those that an erasure searches."""
    return {(one.table, column.name) for one in SOURCES for column in one.columns}


def test_each_column_that_can_hold_text_is_searched_or_has_a_reason() -> None:
    never = {
        (table, name)
        for table, name in with_text()
        if f"{table}.{name}" in NEVER or name in NEVER
    }
    forgotten = with_text() - searched() - never
    in_vain = {
        name
        for name in NEVER
        if not any(name in (column, f"{table}.{column}") for table, column in never)
    }
    assert in_vain == set()
    assert forgotten == set(), (
        "list them in store/erasing/personal_columns.py, or in NEVER of "
        "tests/architecture/test_personal_columns.py with the reason"
    )
    assert searched() <= with_text()
    assert searched() & never == set()


def test_the_guide_lists_each_column_that_is_searched() -> None:
    rows = [line for line in pages()[PAGE].splitlines() if line.startswith("| `")]
    listed = {
        (table, name)
        for row in rows
        for table, columns in [row.strip("| ").split(" | ")[:2]]
        for name in columns.replace("`", "").split(", ")
    }
    assert {(table.strip("`"), name) for table, name in listed} == searched()


def test_a_text_is_searched_as_a_text_and_json_as_json() -> None:
    fields = {
        (model._meta.db_table, field.column): field
        for model in MODELS
        if not model._meta.proxy
        for field in model._meta.concrete_fields
    }
    for source in SOURCES:
        for column in source.columns:
            field = fields[source.table, column.name]
            is_json = isinstance(field, models.JSONField)
            assert is_json == (column.holds is not Holds.TEXT), (source, column)
            assert is_json or field.max_length == column.longest, (source, column)
