"""One table has every option of a job; whatever lists options agrees with it."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings

from django_jobqueue.backends import job_task
from django_jobqueue.backends.job_task import PER_JOB, POLICY, JobTask, PolicyOptions
from django_jobqueue.domain import job_options
from django_jobqueue.domain.job_options import COLUMNS, OF_JOB, OPTIONS, OVERRIDES
from django_jobqueue.domain.policy import Policy
from django_jobqueue.enqueueing.options import HandlerOptions, JobOptions, Options
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.models import JobType
from django_jobqueue.operations.checks import checked_moment


def test_whatever_lists_options_agrees_with_the_table() -> None:
    assert {field.name for field in fields(Policy)} == {*job_options.OF_TYPE}
    named = {"takes_context"}  # in the signature, which depends on it
    assert {*HandlerOptions.__annotations__} == {*job_options.OF_TYPE} - named
    assert {*JobOptions.__annotations__} == {*OF_JOB}
    assert {field.name for field in fields(Options)} == {*OF_JOB}
    assert {*job_options.TypeOverrides.__annotations__} == {*OVERRIDES}
    for name, option in OPTIONS.items():
        assert option.of_type or option.of_job or option.override, name
    assert {*PolicyOptions.__annotations__} == {*POLICY}  # of tasks
    assert {*job_task.JobOptions.__annotations__} == {*POLICY} | job_task.OF_CALLS
    assert {*POLICY, *PER_JOB} <= {field.name for field in fields(JobTask)}
    for name in OF_JOB:  # None leaves it to the type
        assert Options().but({name: None}) == Options(), name


def test_the_model_has_the_columns_of_options_and_overrides() -> None:
    for name, option in COLUMNS.items():
        db_type = JobType._meta.get_field(name).db_type(connection)
        is_text = option.sql_type == "text" and db_type.startswith("varchar")
        assert db_type == option.sql_type or is_text, name
    for name, override in OVERRIDES.items():
        field = JobType._meta.get_field(f"{name}_override")
        assert field.null
        assert (field.db_type(connection) == "interval") is override.is_duration, name


def test_an_override_takes_its_limits_and_refuses_what_is_beyond() -> None:
    for name, override in OVERRIDES.items():
        if override.is_text:
            continue
        one: Any = timedelta(microseconds=1) if override.is_duration else 1
        least: Any = override.least
        most: Any = override.most
        right = [None, least, most]
        wrong = [most + one, True, "x", 1.5]
        if override.unlimited is None or override.unlimited == least:
            wrong.append(least - one)
        else:
            right.append(override.unlimited)
        assert [value for value in right if override.problem(value)] == [], name
        assert [value for value in wrong if not override.problem(value)] == [], name
    summary = OVERRIDES["summary"]
    assert summary.problem("order {order_id}") is summary.problem(None) is None
    for value in (7, "", "{a!r}", "x" * 201):
        assert summary.problem(value)


def test_a_moment_that_no_row_can_have_is_refused_before_the_insert() -> None:
    """Whatever takes one; the row would be refused by a constraint of the table."""
    moments = product(
        (datetime.min, datetime.max), (UTC, timezone(timedelta(hours=14)), None)
    )
    for moment, zone in moments:
        moment = moment.replace(tzinfo=zone)
        with override_settings(USE_TZ=zone is not None):
            for name in ("run_after", "expires_at"):
                problem = OPTIONS[name].problem(moment)
                assert problem is not None
                assert "must be from 0001-01-03 to 9999-12-30" in problem
            for name in ("until", "run_after"):
                with pytest.raises(InvalidArguments, match="must be from 0001-01-03"):
                    checked_moment(name, moment)
