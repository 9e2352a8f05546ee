"""Each column that can hold text is one that an erasure searches, or has a reason."""

from __future__ import annotations

from django.contrib.admin.models import LogEntry
from django.db import models

from django_jobqueue import rooms
from django_jobqueue.contrib.privacy.searched_tables import sources
from django_jobqueue.domain.states import Holds
from tests.docs.pages import pages

PAGE = "docs/guides/personal-data.md"
# Why other columns cannot hold a person's value: by the column, or by table and column.
REASONS = {
    "one of a few words": """
        act delivery end kind missed origin outcome overlap state status announced
        condition event pending
        jobqueue_auditentry: verb
        jobqueue_http_token: scopes
        jobqueue_console_savedview: list
        jobqueue_worker: desired
    """,
    "numbers and names of a policy": """
        backoff
        jobqueue_bulkoperation: options
        jobqueue_jobtype: rate rate_override retry
        jobqueue_keylimit: rate rate_override
        jobqueue_keyoverride: rate
    """,
    "a name from the code": """
        queue release schedule job_type
        jobqueue_failuregroup: resolved_in
        jobqueue_jobtype: limit_name name
        jobqueue_figures: name
        jobqueue_host: queues
        jobqueue_http_token: job_types queues
        jobqueue_keylimit: name
        jobqueue_leases_lease: name
        jobqueue_queue: name
        jobqueue_schedules_schedule: name time_zone time_zone_override
        jobqueue_worker: job_types queues versions
    """,
    "of a machine or a process": """
        worker
        jobqueue_host: host identity name
        jobqueue_leases_lease: holder host
        jobqueue_worker: host identity name supervisor
    """,
    "a name from the code, or a fingerprint": "jobqueue_alerts_alert: subject",
    "numbers, and names from the code": "jobqueue_alerts_alert: text",
    "a name from the settings": "jobqueue_alerts_alertdelivery: channel",
    "the class of an error": """
        jobqueue_alerts_alertdelivery: error
        jobqueue_console_jobsearch: error
        jobqueue_privacy_erasure: error
    """,
    "counts, names of job types and ids": "jobqueue_bulkoperation: counted",
    "times and ids": """
        jobqueue_bulkoperation: cursor
        jobqueue_console_jobsearch: place
    """,
    "the number of a transaction": "jobqueue_bulkoperation: horizon",
    "counts": """
        jobqueue_bulkoperation: skipped
        jobqueue_console_jobsearch: matched
        jobqueue_privacy_erasure: changed remaining
        jobqueue_total: attempts_histogram run_histogram wait_histogram
        jobqueue_worker: rescued
    """,
    "ids": """
        jobqueue_databaseidentity: identity
        jobqueue_console_jobsearch: newest
    """,
    "counts, ids and names": "jobqueue_privacy_erasure: counted",
    "a keyed hash": "jobqueue_privacy_erasure: fingerprint",
    "a key of data": "jobqueue_privacy_erasure: key",
    "keys of rows": "jobqueue_privacy_erasure: position",
    "the value itself, until the erasure ends": "jobqueue_privacy_erasure: value",
    "releases": "jobqueue_failuregroup: excused",
    "the code says so": """
        jobqueue_failuregroup: frame
        jobqueue_jobtype: description follower_arguments followers handler indexed
        jobqueue_jobtype: limit_rule weight_rule sensitive summary unique_by
        jobqueue_jobtype: unique_rule
    """,
    "counts, and names from the code": "jobqueue_figures: figures",
    "a plan and numbers": "jobqueue_host: applied desired",
    "about a plan, or the last line of code that does not start": """
        jobqueue_host: error
    """,
    "a hash of a random text": "jobqueue_http_token: digest",
    "of a program": "jobqueue_http_token: name",
    "gone some minutes after the last start is forgotten": "jobqueue_bucket: limit_key",
    "it can; the guide says that its owner deletes the view": """
        jobqueue_console_savedview: name owner query
    """,
    "a rule and a time zone": "jobqueue_schedules_schedule: planned_for",
    "a rule of times": "jobqueue_schedules_schedule: rule rule_override",
    "of a program, or the name of a user": "jobqueue_worker: owner",
    "numbers, and errors of connections without their data": "jobqueue_worker: answers",
    "times and numbers": "jobqueue_worker: request",
    "files and lines of code, without values": "jobqueue_worker: stack_dump",
    "the key of an object": "django_admin_log: object_id",
}
NEVER = {
    f"{table}.{column}" if table else column
    for columns in REASONS.values()
    for line in columns.strip().splitlines()
    for table, _, names in [line.strip().rpartition(": ")]
    for column in names.split()
}
WITH_TEXT = (models.CharField, models.TextField, models.JSONField)
MODELS = (*rooms.models(), LogEntry)


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
    return {(one.table, column.name) for one in sources() for column in one.columns}


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
        "list them in store/personal_columns.py, or in REASONS of "
        "tests/architecture/test_personal_columns.py"
    )
    assert searched() <= with_text()
    assert searched() & never == set()


def test_rows_of_a_unique_value_go_with_it() -> None:
    """Erased, those of two persons would be equal, and the second erasure fail."""
    unique = {
        (model._meta.db_table, name)
        for model in MODELS
        for names in (
            *([f.name] for f in model._meta.concrete_fields if f.unique),
            *(one.fields for one in model._meta.total_unique_constraints),
            *model._meta.unique_together,
        )
        for name in names
    }
    collide = {
        (source.table, column.name)
        for source in sources()
        for column in source.columns
        if (source.table, column.name) in unique and not source.is_of_value
    }
    assert collide == set()


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
    for source in sources():
        for column in source.columns:
            field = fields[source.table, column.name]
            is_json = isinstance(field, models.JSONField)
            assert is_json == (column.holds is not Holds.TEXT), (source, column)
            assert is_json or field.max_length == column.longest, (source, column)
