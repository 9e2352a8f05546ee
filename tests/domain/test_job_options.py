"""One table has every option of a job; whatever lists options agrees with it."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings

from django_jobqueue.backends.job_task import (
    OF_CALLS,
    PER_JOB,
    POLICY,
    JobTask,
    PolicyOptions,
)
from django_jobqueue.backends.job_task import JobOptions as TaskOptions
from django_jobqueue.domain.job_options import (
    COLUMNS,
    OF_JOB,
    OF_TYPE,
    OPTIONS,
    OVERRIDES,
    TypeOverrides,
)
from django_jobqueue.domain.policy import Policy
from django_jobqueue.enqueueing.options import (
    HandlerOptions,
    JobOptions,
    Options,
)
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.models import JobType
from django_jobqueue.operations.checks import checked_moment


def test_a_policy_has_the_options_of_a_job_type() -> None:
    assert {field.name for field in fields(Policy)} == {*OF_TYPE}


def test_an_editor_knows_the_options_of_a_job_type() -> None:
    named = {"takes_context"}  # in the signature, which depends on it
    assert {*HandlerOptions.__annotations__} == {*OF_TYPE} - named


def test_an_editor_knows_the_options_of_a_task() -> None:
    assert {*PolicyOptions.__annotations__} == {*POLICY}
    assert {*TaskOptions.__annotations__} == {*POLICY} | OF_CALLS


def test_a_task_keeps_its_options() -> None:
    kept = {field.name for field in fields(JobTask)}
    assert {*POLICY, *PER_JOB} <= kept


def test_using_takes_and_keeps_the_options_of_one_job() -> None:
    assert {*JobOptions.__annotations__} == {*OF_JOB}
    assert {field.name for field in fields(Options)} == {*OF_JOB}


def test_an_editor_knows_the_overrides() -> None:
    assert {*TypeOverrides.__annotations__} == {*OVERRIDES}


@pytest.mark.parametrize("name", OPTIONS)
def test_somebody_can_state_each_option(name: str) -> None:
    option = OPTIONS[name]
    assert option.of_type or option.of_job or option.override


@pytest.mark.parametrize("name", COLUMNS)
def test_the_model_has_the_column_of_an_option(name: str) -> None:
    field = JobType._meta.get_field(name)
    assert field.db_type(connection) == COLUMNS[name].sql_type or (
        COLUMNS[name].sql_type == "text"
        and field.db_type(connection).startswith("varchar")
    )


@pytest.mark.parametrize("name", OVERRIDES)
def test_the_model_has_a_column_for_an_override(name: str) -> None:
    field = JobType._meta.get_field(f"{name}_override")
    assert field.null
    assert (field.db_type(connection) == "interval") is OVERRIDES[name].is_duration


@pytest.mark.parametrize("name", [n for n, one in OVERRIDES.items() if not one.is_text])
def test_an_override_takes_its_limits_and_refuses_what_is_beyond(name: str) -> None:
    override = OVERRIDES[name]
    one: Any = timedelta(microseconds=1) if override.is_duration else 1
    least: Any = override.least
    most: Any = override.most
    right = [None, least, most]
    wrong = [most + one, True, "x", 1.5]
    if override.unlimited is None or override.unlimited == least:
        wrong.append(least - one)
    else:
        right.append(override.unlimited)
    assert [value for value in right if override.problem(value)] == []
    assert [value for value in wrong if not override.problem(value)] == []


def test_a_summary_is_checked_as_the_code_s_is() -> None:
    override = OVERRIDES["summary"]
    assert override.problem("order {order_id}") is None
    assert override.problem(None) is None
    for wrong in (7, "", "{a!r}", "x" * 201):
        assert override.problem(wrong)


@pytest.mark.parametrize("name", OF_JOB)
def test_none_leaves_each_option_of_one_job_to_its_type(name: str) -> None:
    said = Options().but({name: None})
    assert said == Options()


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=14)), None])
@pytest.mark.parametrize("moment", [datetime.min, datetime.max])
def test_a_moment_that_no_row_can_have_is_refused_before_the_insert(
    moment: datetime, zone: tzinfo | None
) -> None:
    """Whatever takes one; the row would be refused by a constraint of the table."""
    moment = moment.replace(tzinfo=zone)
    with override_settings(USE_TZ=zone is not None):
        for name in ("run_after", "expires_at"):
            problem = OPTIONS[name].problem(moment)
            assert problem is not None
            assert "must be from 0001-01-03 to 9999-12-30" in problem
        for name in ("until", "run_after"):
            with pytest.raises(InvalidArguments, match="must be from 0001-01-03"):
                checked_moment(name, moment)
