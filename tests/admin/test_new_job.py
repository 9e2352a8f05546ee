"""New jobs by hand: a form from the handler's signature, checked as enqueue checks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from django_jobqueue import InvalidArguments, job, operations
from django_jobqueue.domain.registry import registry
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob
from tests.admin.conftest import LogIn
from tests.admin.pages import get, list_of, page_of, post
from tests.admin.scene import ADD, LEAK, SECRET
from tests.admin.units import answer, errors_of, told
from tests.sample import tasks

SHIP = "tests.admin.test_new_job.ship"


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


PARAMETERS = (
    *("order", "weight", "on", "size", "at", "customer", "note", "speed", "factor"),
    *("fragile", "gift", "lines", "options", "anything", "password"),
)


def ship(
    order: int,
    weight: Decimal,
    on: date,
    size: Size,
    at: datetime | None = None,
    customer: UUID | None = None,
    note: str = "with <b>care</b>",
    speed: Literal["slow", "fast", 3] = "fast",
    factor: float = 1.5,
    fragile: bool = True,
    gift: bool | None = None,
    lines: list[dict[str, int]] | None = None,
    options: dict[str, Any] = {"a": [1]},  # noqa: B006
    anything=7,  # type: ignore[no-untyped-def]
    password: str = "",
    **more: Any,
) -> None:
    """Ship an order.

    It is <i>sent</i>.
    """


@pytest.fixture(autouse=True)
def shipping(db: None) -> Iterator[None]:
    """A job type with a parameter of each kind."""
    job(name=SHIP, queue="parcels")(ship)
    JobType.objects.create(name=SHIP, queue="parcels", handler="x:ship")
    yield
    registry.remove(SHIP)


def form_of(name: str) -> str:
    return reverse("admin:jobqueue_jobtype_new", args=[quote(name)])


def sent(client: Client, name: str, raw: bool = False, **said: Any) -> Any:
    """The answer to the form that is shown, filled."""
    address, query = form_of(name), {"raw": 1} if raw else {}
    form = answer(client, address, **query).context_data["form"]
    return answer(client, address, {"id": form["id"].value(), **said}, **query)


def enqueue(client: Client, name: str, raw: bool = False, **said: Any) -> str:
    """Fill the form that is shown, and send it: what is told."""
    response = sent(client, name, raw, **said)
    assert response.status_code == 302, errors_of(response)
    return told(response)


def refused(client: Client, name: str, raw: bool = False, **said: Any) -> str:
    return errors_of(sent(client, name, raw, **said))


def arguments(**values: Any) -> dict[str, Any]:
    return {f"argument_{name}": value for name, value in values.items()}


REQUIRED = arguments(order="9007199254740993", weight="1.10", on="2026-11-22", size="1")
GIVEN = {
    **{"order": 9007199254740993, "weight": "1.10", "on": "2026-11-22", "size": "l"}
}
UNCHANGED = arguments(
    note="with <b>care</b>",
    speed="1",
    factor="1.5",
    fragile="on",
    gift="unknown",
    options='{"a": [1]}',
    anything="7",
)


def test_the_form_has_a_field_for_each_parameter(anna: Client) -> None:
    page = get(anna, form_of(SHIP))
    names = [
        str(attrs["name"])
        for tag, attrs in page.elements
        if tag in ("input", "select", "textarea")
        and "argument_" in str(attrs.get("name"))
    ]
    assert names == [f"argument_{name}" for name in PARAMETERS]
    assert "It is <i>sent</i>." in page.text
    assert "parcels, the default of the job type" in page.text
    (box,) = page.all("input", name="argument_note")
    assert box["value"] == "with <b>care</b>"
    (box,) = page.all("input", name="argument_password")
    assert box["type"] == "password"


def test_what_is_left_as_it_was_is_left_out(
    anna: Client, operated: list[dict[str, Any]]
) -> None:
    said = {**REQUIRED, **UNCHANGED, "reason": "OPS-12"}
    assert enqueue(anna, SHIP, **said) == "This is the new job."
    made = QueuedJob.objects.get()
    assert made.data == GIVEN
    assert (made.queue, made.enqueued_by) == ("parcels", "anna")
    entry = LogEntry.objects.get()
    about = (entry.object_id, entry.get_change_message())
    assert about == (str(made.pk), "Enqueued by hand. OPS-12")
    assert [(one["verb"], one["by"]) for one in operated] == [("enqueue", "anna")]


def test_every_kind_of_value_arrives_as_json(anna: Client) -> None:
    customer = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
    said = arguments(
        at="2026-11-22T10:30",
        customer=customer,
        note="",
        speed="2",
        factor="2",
        gift="true",
        lines='[{"sku": 1}]',
        options="{}",
        anything='"text"',
        password=SECRET,
    )
    enqueue(anna, SHIP, **REQUIRED, **said, others='{"extra": null}')
    assert QueuedJob.objects.get().data == {
        **GIVEN,
        **{"at": "2026-11-22T10:30:00+00:00", "customer": customer, "note": ""},
        **{"speed": 3, "factor": 2.0, "fragile": False, "gift": True, "options": {}},
        **{"lines": [{"sku": 1}], "anything": "text", "password": SECRET},
        "extra": None,
    }


def test_what_does_not_fit_is_said_at_its_field(anna: Client) -> None:
    for name, value, problem in (
        ("order", "", "This field is required."),
        ("order", "x", "Enter a whole number."),
        ("weight", "x", "Enter a number."),
        ("on", "soon", "Enter a valid date."),
        ("size", "9", "Select a valid choice."),
        ("lines", "[1", "This is not JSON."),
        ("lines", "[NaN]", "This is not JSON."),
        ("lines", "[" * 100_000, "This is not JSON."),
        ("customer", "x", "Enter a valid UUID."),
        ("note", "x\x00y", "Null characters are not allowed."),
        ("options", '{"a": "\\u0000"}', "NUL character"),
        ("factor", "1e300", "which would come back as another number"),
    ):
        errors = refused(
            anna, SHIP, **{**REQUIRED, **UNCHANGED, **arguments(**{name: value})}
        )
        assert errors.startswith(f"argument_{name}: "), errors
        assert problem in errors
    early = {"expires_at": "2020-01-01T00:00"}
    errors = refused(anna, ADD, **arguments(a="1"), **early)
    assert "This is before the job would run." in errors
    assert not QueuedJob.objects.exists()
    # Secrets that were sent are not shown again.
    page = post(anna, form_of(LEAK), {**arguments(token=SECRET), "priority": "x"})
    row = page.html[: page.html.index('name="priority"')].rpartition("form-row")
    assert "errorlist" in row[2]
    assert SECRET not in page.html


def test_when_where_and_how_urgently(anna: Client) -> None:
    moments = {"run_after": "2031-01-02T03:04", "expires_at": "2031-01-03T00:00"}
    where = {"priority": "9", "queue": "default"}
    enqueue(anna, ADD, **arguments(a="1", b="0"), **moments, **where)
    made = QueuedJob.objects.get()
    assert (made.priority, made.queue, made.data) == (9, "default", {"a": 1})
    assert made.run_after.isoformat() == "2031-01-02T03:04:00+00:00"
    assert made.expires_at is not None
    assert made.expires_at.isoformat() == "2031-01-03T00:00:00+00:00"


def test_a_form_that_is_sent_twice_makes_one_job(anna: Client) -> None:
    id = answer(anna, form_of(ADD)).context_data["form"]["id"].value()
    twice = {"id": id, **arguments(a="1", b="0")}
    anna.post(form_of(ADD), twice)
    again = anna.post(form_of(ADD), twice)
    assert again.headers["Location"] == page_of("queuedjob", id)
    assert QueuedJob.objects.count() == 1
    QueuedJob.objects.all().delete()
    ArchivedJob.objects.create(id=id, job_type_id=ADD, status="succeeded")
    again = anna.post(form_of(ADD), twice)
    assert again.headers["Location"] == page_of("archivedjob", id)


def test_a_duplicate_of_a_unique_job_is_refused_with_the_job_that_is_there(
    anna: Client,
) -> None:
    name, said = "tests.sample.index", arguments(document="7", why="")
    enqueue(anna, name, **said)
    (job,) = QueuedJob.objects.all()
    errors = refused(anna, name, **said)
    assert f"Job {job.id} of type '{name}' is already queued" in errors
    assert QueuedJob.objects.count() == 1


def test_data_can_be_written_as_json(anna: Client) -> None:
    for others, problem in (
        ('{"c": 1}', "has no parameter 'c'"),
        ("[1]", "The data of a job is an object"),
        (
            '{"a": [1], "b": "2"}',
            "'a' must be int, not list. 'b' must be int, not str.",
        ),
    ):
        assert problem in refused(anna, ADD, raw=True, others=others)
    enqueue(anna, "tests.sample.keep", raw=True, others='{"a": [1]}')
    assert QueuedJob.objects.get().data == {"a": [1]}
    # A type without a handler here takes JSON.
    name = "elsewhere.ship/_x"
    JobType.objects.create(name=name, queue="default")
    page = get(anna, form_of(name))
    assert "This process does not know this job type" in page.text
    enqueue(anna, name, others=json.dumps({"x": [1, None]}))
    assert QueuedJob.objects.get(job_type_id=name).data == {"x": [1, None]}


def test_enqueueing_needs_two_rights(log_in: LogIn, viewer: Client) -> None:
    rights = {"view_jobtype", "enqueue_job"}
    for missing in rights:
        client = log_in(*rights - {missing}, name=missing)
        assert client.get(form_of(ADD)).status_code == 403
        assert client.post(form_of(ADD), arguments(a="1")).status_code == 403
    client = log_in(*rights, "view_queuedjob", name="all")
    assert form_of(ADD) in get(client, page_of("jobtype", ADD)).links
    assert "New job" in get(client, list_of("queuedjob")).text
    blind = log_in(*rights, name="blind")
    said = arguments(a="1", b="0")
    assert enqueue(blind, ADD, **said) == "The job was enqueued."
    assert form_of(ADD) not in get(viewer, page_of("jobtype", ADD)).links
    assert "New job" not in get(viewer, list_of("queuedjob")).text
    assert client.get(form_of("no.such")).status_code == 404


# Jobs of Django's tasks.


@pytest.fixture
def _known(db: None) -> None:
    tasks.add.enqueue(1), tasks.anything.enqueue(), tasks.charge.enqueue(1)
    QueuedJob.objects.all().delete()


@pytest.mark.usefixtures("_known")
def test_a_task_can_be_enqueued_in_the_admin(anna: Client) -> None:
    page = get(anna, form_of(tasks.charge.module_path))
    names = {str(box["name"]) for box in page.all("input") if "name" in box}
    assert {"argument_order", "argument_card"} <= names
    (box,) = page.all("input", name="argument_card")
    assert box["type"] == "password"
    enqueue(anna, tasks.add.module_path, **arguments(a="7", b="0"))
    made = QueuedJob.objects.get()
    assert made.data == {"a": 7}
    result = tasks.add.get_result(str(made.pk))
    assert (result.args, result.kwargs) == ([], {"a": 7})
    # Positional arguments can be given as JSON.
    text = '{"*": {"args": [1, 2]}, "three": 3}'
    enqueue(anna, tasks.anything.module_path, raw=True, others=text)
    made = QueuedJob.objects.get(job_type_id=tasks.anything.module_path)
    found = tasks.anything.get_result(str(made.pk))
    assert (found.args, found.kwargs) == ([1, 2], {"three": 3})


def test_a_task_is_enqueued_by_the_command_and_edited_data_fit_it(db: None) -> None:
    result = tasks.add.enqueue(1, b=2)
    name = tasks.add.module_path
    operations.edit_data(result.id, {"a": 9, "b": 2, "*": {"args": 1}})
    changed = tasks.add.get_result(result.id)
    assert (changed.args, changed.kwargs) == ([9], {"b": 2})
    with pytest.raises(InvalidArguments, match="is missing 'a'"):
        operations.edit_data(result.id, {"b": 2})
    call_command("jobqueue", "enqueue", name, '{"a": 5}')
    assert QueuedJob.objects.latest("id").data == {"a": 5}
    with pytest.raises(CommandError, match="has no parameter 'c'"):
        call_command("jobqueue", "enqueue", name, '{"a": 5, "c": 1}')
