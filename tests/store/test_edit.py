"""Edit data: only of a job that waits, and only if they are as they were seen."""

from __future__ import annotations

from functools import partial

import pytest

from django_jobqueue import (
    DuplicateJob,
    InvalidArguments,
    JobChanged,
    JobNotFound,
    NotEditable,
)
from django_jobqueue.domain.ids import new_id
from django_jobqueue.models import QueuedJob
from django_jobqueue.operations import edit_data
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.control.edit import Edited, edit
from tests.sample.jobs import add, add_alone
from tests.store.meanwhile import together

pytestmark = pytest.mark.django_db


def test_a_waiting_job_gets_other_data_if_they_fit_and_are_as_expected() -> None:
    job = add.enqueue(1, b=2)
    with pytest.raises(JobChanged):
        edit_data(job.id, {"a": 5}, expected='{"a": 2}')
    with pytest.raises(InvalidArguments, match="missing 'a'"):
        edit_data(job.id, {"b": 5})
    assert QueuedJob.objects.get().data == {"a": 1, "b": 2}
    assert edit_data(job.id, {"a": 5}, expected='{"b": 2, "a": 1}').data == {"a": 5}
    QueuedJob.objects.update(status="running")
    with pytest.raises(NotEditable, match="is running"):
        edit_data(job.id, {"a": 6})
    assert QueuedJob.objects.get().data == {"a": 5}
    with pytest.raises(JobNotFound):
        edit_data(new_id(), {"a": 5})
    assert edit(DjangoDatabase(), new_id(), "{}", None) is None


def test_the_unique_key_is_that_of_the_data() -> None:
    """Unless the caller gave another one; nothing is done if somebody has it."""
    job, own = add_alone.enqueue(1), add_alone.using(unique_key="mine").enqueue(5)
    edit_data(job.id, {"a": 2})
    edit_data(own.id, {"a": 2, "b": 1})
    assert add_alone.enqueue(1).is_new
    for other in (lambda: add_alone.enqueue(2), lambda: edit_data(job.id, {"a": 1})):
        with pytest.raises(DuplicateJob):
            other()
    assert QueuedJob.objects.get(pk=job.id).data == {"a": 2}
    with pytest.raises(DuplicateJob):
        add_alone.using(unique_key="mine").enqueue(6)


@pytest.mark.django_db(transaction=True)
def test_of_two_edits_of_the_same_data_one_is_done() -> None:
    job = add.enqueue(1)
    found = together(
        [
            partial(edit, DjangoDatabase(), job.id, f'{{"a": {n}}}', '{"a": 1}')
            for n in (7, 8)
        ]
    )
    assert sorted(found, key=lambda one: one.is_done) == [
        Edited("queued", as_seen=False),
        Edited("queued", as_seen=True),
    ]
    assert QueuedJob.objects.get().data in ({"a": 7}, {"a": 8})
