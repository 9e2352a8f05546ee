"""Jobs of Django's tasks, enqueued and edited by hand."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from django_jobqueue import InvalidArguments, operations
from django_jobqueue.models import JobType, QueuedJob
from tests.admin.pages import get
from tests.admin.test_new_job import arguments, enqueue, form_of
from tests.sample import tasks

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _known() -> None:
    """The rows of the job types are there."""
    tasks.add.enqueue(1)
    tasks.anything.enqueue()
    tasks.charge.enqueue(1)
    QueuedJob.objects.all().delete()


def test_the_form_of_a_task_has_its_parameters(anna: Client) -> None:
    page = get(anna, form_of(tasks.charge.module_path))
    names = {str(box["name"]) for box in page.all("input") if "name" in box}
    assert {"argument_order", "argument_card"} <= names
    (box,) = page.all("input", name="argument_card")
    assert box["type"] == "password"
    assert "Take money." in page.text


def test_a_task_can_be_enqueued_in_the_admin(anna: Client) -> None:
    told = enqueue(anna, tasks.add.module_path, **arguments(a="7", b="0"))
    assert told == "This is the new job."
    made = QueuedJob.objects.get()
    assert made.data == {"a": 7}
    result = tasks.add.get_result(str(made.pk))
    assert (result.args, result.kwargs) == ([], {"a": 7})


def test_positional_arguments_can_be_given_as_json(anna: Client) -> None:
    text = '{"*": {"args": [1, 2]}, "three": 3}'
    enqueue(anna, tasks.anything.module_path, raw=True, others=text)
    made = QueuedJob.objects.get()
    result = tasks.anything.get_result(str(made.pk))
    assert (result.args, result.kwargs) == ([1, 2], {"three": 3})


def test_a_task_can_be_enqueued_by_the_command() -> None:
    call_command("jobqueue", "enqueue", tasks.add.module_path, '{"a": 5}')
    assert QueuedJob.objects.get().data == {"a": 5}
    with pytest.raises(CommandError, match="has no parameter 'c'"):
        call_command("jobqueue", "enqueue", tasks.add.module_path, '{"a": 5, "c": 1}')


def test_edited_data_must_fit_the_task() -> None:
    result = tasks.add.enqueue(1, b=2)
    operations.edit_data(result.id, {"a": 9, "b": 2, "*": {"args": 1}})
    changed = tasks.add.get_result(result.id)
    assert (changed.args, changed.kwargs) == ([9], {"b": 2})
    with pytest.raises(InvalidArguments, match="is missing 'a'"):
        operations.edit_data(result.id, {"b": 2})


def test_the_job_type_tells_that_it_is_a_task(anna: Client) -> None:
    row = JobType.objects.get(name=tasks.add.module_path)
    assert row.handler == "task tests.sample.tasks:add"
    assert row.description == "Return a sum."
