"""One table has every option of a job; whatever lists options agrees with it."""

from __future__ import annotations

from dataclasses import fields

import pytest

from django_jobqueue.backends.job_task import (
    OF_CALLS,
    PER_JOB,
    POLICY,
    JobTask,
    PolicyOptions,
)
from django_jobqueue.backends.job_task import JobOptions as TaskOptions
from django_jobqueue.domain.job_options import OF_JOB, OF_TYPE, OPTIONS
from django_jobqueue.domain.policy import Policy
from django_jobqueue.enqueueing.options import (
    HandlerOptions,
    JobOptions,
    Options,
)


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


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_of_a_job_type_or_of_one_job(name: str) -> None:
    assert OPTIONS[name].of_type or OPTIONS[name].of_job


@pytest.mark.parametrize("name", OF_JOB)
def test_none_leaves_each_option_of_one_job_to_its_type(name: str) -> None:
    said = Options().but({name: None})
    assert said == Options()
