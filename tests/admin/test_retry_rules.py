"""Retry rules, and the options of single jobs, on the pages of the admin."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from django_jobqueue import RetryRule, job
from django_jobqueue.domain.registry import registry
from django_jobqueue.models import Failure, JobType
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase
from tests.admin import scene as rows
from tests.admin.pages import get, page_of
from tests.admin.scene import FAIL, MINUTE

NAME = "tests.with_rules"


def by_error(attempt: int, exception: BaseException, job: Any) -> float:
    return 5


@pytest.fixture
def with_rules(db: None) -> Any:
    """A job type with every kind of rule."""

    @job(
        name=NAME,
        max_attempts=9,
        backoff=by_error,
        retry={
            KeyError: False,
            OSError: True,
            ValueError: "quartic",
            TypeError: RetryRule(max_attempts=3, backoff=30),
        },
    )
    def handler() -> None: ...

    job_types.declare(DjangoDatabase(), [handler.declaration])
    yield handler
    registry.remove(NAME)


def test_the_page_of_a_job_type_tells_its_rules(anna: Client, with_rules: Any) -> None:
    page = get(anna, page_of("jobtype", NAME))
    assert "Backoff by_error" in page.text
    rules = (
        "KeyError: not retried OSError: retried ValueError: backoff quartic "
        "TypeError: max attempts 3, backoff fixed(wait=0:00:30)"
    )
    assert f"Retry rules {rules}" in page.text


def test_a_type_with_a_function_can_be_overridden(
    anna: Client, with_rules: Any
) -> None:
    JobType.objects.filter(pk=NAME).update(
        max_attempts_override=2, timeout_override=MINUTE
    )
    page = get(anna, page_of("jobtype", NAME))
    assert "Backoff by_error" in page.text
    assert "1 m" in page.text


@pytest.mark.parametrize("retry", [None, "", {}, [5], [{}], [{"exception": 5}]])
def test_rules_that_plain_sql_wrote_break_no_page(
    anna: Client, with_rules: Any, retry: Any
) -> None:
    JobType.objects.filter(pk=NAME).update(retry=retry if retry is not None else 0)
    assert "Retry rules" in get(anna, page_of("jobtype", NAME)).text


@pytest.mark.parametrize("model", ["queuedjob", "archivedjob"])
@pytest.mark.parametrize(
    ("backoff", "text"),
    [
        ({"policy": "fixed", "wait": 30}, "fixed(wait=30)"),
        ({"policy": "quartic"}, "quartic"),
        ({"policy": "<b>"}, "{'policy': '<b>'}"),
        (None, None),
    ],
)
def test_the_page_of_a_job_tells_what_it_has_for_itself(
    anna: Client, db: None, model: str, backoff: Any, text: str | None
) -> None:
    columns = {"timeout": timedelta(seconds=90) if text else None, "backoff": backoff}
    if model == "queuedjob":
        id = rows.queued(FAIL, **columns)
    else:
        id = rows.archived(FAIL, "failed", **columns)
    page = get(anna, page_of(model, id))
    assert ("Timeout 1 m 30 s" in page.text) == (text is not None)
    assert f"Backoff {text}" in page.text if text else "Backoff" not in page.text


def test_an_attempt_tells_which_rule_decided(anna: Client, db: None) -> None:
    id = rows.queued(FAIL, attempts=1, run_after=timezone.now() + MINUTE)
    Failure.objects.create(
        job_id=id,
        job_type=FAIL,
        number=1,
        end="failed",
        started_at=timezone.now(),
        finished_at=timezone.now(),
        error_class="OSError",
        error_message="no answer",
        reason="the wait for <OSError>",
    )
    page = get(anna, page_of("queuedjob", id))
    assert "OSError : no answer the wait for <OSError>" in page.text


def test_a_running_job_is_measured_by_its_own_timeout(anna: Client, db: None) -> None:
    worker = rows.worker(running=1)
    started = timezone.now() - MINUTE
    rows.queued(
        FAIL,
        status="running",
        worker_id=worker,
        started_at=started,
        attempts=1,
        timeout=timedelta(minutes=7),
    )
    assert "7 m" in get(anna, page_of("worker", worker)).text
