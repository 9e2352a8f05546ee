"""Fixtures and marks of pytest, loaded wherever django-jobqueue is installed.

Nothing here touches Django's settings before a test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

import django_jobqueue
from django_jobqueue.conf import Conf
from django_jobqueue.embedded import EmbeddedWorker
from django_jobqueue.enqueueing.immediate_jobs import memory
from django_jobqueue.testing.mixins import JobQueueVerbs
from django_jobqueue.text.suggestions import no_argument

MARKS = (
    "jobqueue(**settings): keys of the JOBQUEUE dict for this test, such as "
    'MODE="immediate"',
    "jobqueue_worker(**options): those of django_jobqueue.worker(), for the fixture "
    "jobqueue_worker",
)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marks known."""
    for mark in MARKS:
        config.addinivalue_line("markers", mark)


@pytest.fixture(autouse=True)
def _jobqueue_settings(request: pytest.FixtureRequest) -> Iterator[None]:
    """The settings of the mark ``jobqueue``; no test sees jobs that another one ran at
    enqueue."""
    memory.clear()
    marks = list(request.node.iter_markers("jobqueue"))
    if not marks:
        yield
        return
    changed = dict(getattr(settings, "JOBQUEUE", {}))
    for mark in reversed(marks):  # the nearest one last
        changed.update(_settings_of(mark))
    with override_settings(JOBQUEUE=changed):
        yield


def _settings_of(mark: pytest.Mark) -> Mapping[str, Any]:
    """The settings of the mark. Raises UsageError for an unknown one: a test that runs
    with other settings than it names may pass."""
    if mark.args:
        raise pytest.UsageError(
            f"The mark jobqueue takes settings by name, not {mark.args[0]!r}. Write "
            'MODE="immediate", say.'
        )
    for name, value in mark.kwargs.items():
        setting = Conf.settings.get(name)
        if setting is None:
            capitals = {known.lower(): f"Write {known}=…" for known in Conf.settings}
            raise pytest.UsageError(
                no_argument("The mark jobqueue", name, Conf.settings, capitals)
            )
        if problem := setting.problem(value):
            raise pytest.UsageError(f"The mark jobqueue: {name} {problem}.")
    return mark.kwargs


@pytest.fixture
def jobqueue() -> JobQueueVerbs:
    """The verbs of ``django_jobqueue.testing``: ``jobqueue.drain()``. Those that look
    at jobs need the database, as any test does: ``@pytest.mark.django_db``."""
    return JobQueueVerbs()


@pytest.fixture
def jobqueue_worker(
    request: pytest.FixtureRequest, transactional_db: None
) -> Iterator[EmbeddedWorker]:
    """A worker that runs in threads of this process, for tests whose transactions are
    committed; ``jobqueue_worker.wait_idle()`` waits for it."""
    mark = request.node.get_closest_marker("jobqueue_worker")
    if mark is not None and mark.args:
        raise pytest.UsageError("The mark jobqueue_worker takes options by name.")
    with django_jobqueue.worker(**(mark.kwargs if mark else {})) as started:
        yield started
