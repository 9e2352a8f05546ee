"""Job types that programs create, and that remote workers do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.management import call_command

from django_jobqueue import (
    DeclaredInCode,
    InvalidArguments,
    PerKey,
    Rate,
    UnknownJobType,
    operations,
)
from django_jobqueue.contrib.http import type_routes, type_schemas
from django_jobqueue.contrib.http.problems import problem_of
from django_jobqueue.domain import registry
from django_jobqueue.models import AuditEntry, JobType
from django_jobqueue.store.job_types import OF_PROGRAMS
from django_jobqueue.text.redaction import MASK
from tests.contrib.http.conftest import Program, problem
from tests.sample import jobs

pytestmark = pytest.mark.django_db
Programs = Callable[..., Program]
NAME = "fleet.resize"
MOMENT = datetime(2026, 11, 1, tzinfo=UTC)


def test_a_program_creates_a_type_enqueues_and_does_its_job(program: Programs) -> None:
    client = program()
    made: Any = client.send(
        "POST",
        "/jobs",
        {
            "name": NAME,
            "attempts": 2,
            "concurrency": 3,
            "timeout": 60,
            "queue": "images",
            "priority": 5,
            "description": "Resize an image.",
        },
    )
    assert made.status_code == 201
    shown = made.json()
    shown.pop("created_at")
    assert shown == {
        "id": NAME,
        "name": NAME,
        "delivery_strategy": "at_least_once",
        "attempts": 2,
        "concurrency": 3,
        "queue": "images",
        "priority": 5,
        "timeout": 60.0,
        "is_paused": False,
        "description": "Resize an image.",
    }
    job: Any = client.send("POST", f"/jobs/{NAME}", {"jobs": [{"data": {"image": 1}}]})
    (id,) = job.json()["ids"]
    new = {"name": "node", "job_types": [NAME]}
    worker = client.send("POST", "/workers", new).json()["id"]  # type: ignore[attr-defined]
    claimed: Any = client.send("POST", f"/workers/{worker}/claim", {"limit": 4})
    (given,) = claimed.json()["jobs"]
    assert (given["id"], given["queue"]) == (id, "images")
    said = {"worker": worker, "fence": given["fence"], "status": "failed"}
    ended: Any = client.send("POST", f"/jobs/{NAME}/{id}", said)
    assert ended.json()["status"] == "queued"  # of two attempts one is left


def test_sent_again_it_changes_the_type_and_keeps_what_operators_say(
    program: Programs,
) -> None:
    client = program()
    client.send("POST", "/jobs", {"name": NAME, "attempts": 2, "concurrency": 3})
    operations.override(NAME, concurrency=1)
    operations.pause([NAME])
    again: Any = client.send(
        "POST", "/v2/job-types", {"name": NAME, "delivery_strategy": "at_most_once"}
    )
    assert again.status_code == 200
    assert again.json()["delivery_strategy"] == "at_most_once"
    assert (again.json()["attempts"], again.json()["concurrency"]) == (1, 1)
    row = JobType.objects.get(pk=NAME)
    assert (row.concurrency, row.paused) == (None, True)
    entries = AuditEntry.objects.filter(verb="declare")
    assert [(one.about, one.by) for one in entries] == [([NAME], "token program-0")] * 2


def test_what_a_program_cannot_say_stays_as_python_gave_it(program: Programs) -> None:
    """Sensitive keys above all, or all who read jobs see them."""
    client, id = program(), "job_282227eb-3c76-4ef7-af7e-25dff933077f"
    given: dict[str, Any] = {
        **{"sensitive": ["reference"], "rate": Rate(5, per=60), "expires_in": 60},
        **{"summary": "{reference}", "max_crashes": 7, "indexed": ["reference"]},
        **{"unique": ("reference",), "per_key": PerKey("reference", concurrency=2)},
        "on_success": "fleet.done",
        **{"concurrency": 3, "description": "Pay."},
    }
    operations.declare_job_type(NAME, **given)
    before = JobType.objects.values().get(pk=NAME)
    client.send("PUT", f"/jobs/{NAME}/{id}", {"data": {"reference": "a secret"}})
    said = client.send("POST", "/v2/job-types", {"name": NAME, "attempts": 9})
    assert said.status_code == 200
    after = JobType.objects.values().get(pk=NAME)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"max_attempts", "concurrency", "description", "declared_at"}
    shown: Any = client.send("GET", f"/jobs/{id}")
    assert shown.json()["data"] == {"reference": MASK}


def test_what_a_program_can_say_are_the_keys_of_the_body() -> None:
    body = type_schemas.NewJobType(
        name=NAME, attempts=1, concurrency=1, queue="q", priority=1, timeout=1.0
    )
    assert {*body.options(), "description"} == {*OF_PROGRAMS}


def test_neither_migrate_nor_a_declaration_of_others_touches_it(
    program: Programs,
) -> None:
    program().send("POST", "/jobs", {"name": NAME, "attempts": 2})
    before = JobType.objects.values().get(pk=NAME)
    call_command("migrate", verbosity=0)
    assert JobType.objects.values().get(pk=NAME) == before


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "name: field required"),
        ({"name": ""}, "name"),
        ({"name": NAME, "id": "fleet.turn"}, "two words"),
        ({"name": "fleet resize"}, "name must have no space"),
        ({"name": "x" * 101}, "name"),
        ({"name": "job_01a21813-7758-70d6-837b-dbae33a5674f"}, "id of a job"),
        ({"name": NAME, "attempts": 0}, "attempts"),
        ({"name": NAME, "attempts": "2"}, "attempts"),
        ({"name": NAME, "concurrency": 0}, "concurrency"),
        ({"name": NAME, "timeout": 0}, "timeout"),
        ({"name": NAME, "delivery_strategy": "exactly_once"}, "delivery_strategy"),
        (
            {"name": NAME, "delivery_strategy": "at_most_once", "attempts": 2},
            "max_attempts must be 1",
        ),
        ({"name": NAME, "handler": "os.system"}, "handler"),
    ],
)
def test_bad_input_creates_nothing(
    program: Programs, body: dict[str, Any], said: str
) -> None:
    answer: Any = program().send("POST", "/jobs", body)
    assert said in problem(answer, 400, "invalid_parameter")["detail"]
    assert not JobType.objects.filter(pk=NAME).exists()


def test_a_type_that_code_declares_stays_the_codes(program: Programs) -> None:
    before = JobType.objects.values().get(pk=jobs.add.name)
    elsewhere = JobType.objects.create(name="elsewhere", handler="other.project.do")
    for name in (jobs.add.name, elsewhere.name):
        answer: Any = program().send("POST", "/jobs", {"name": name, "attempts": 9})
        problem(answer, 409, "declared_in_code")
        with pytest.raises(DeclaredInCode, match=name):
            operations.declare_job_type(name)
    assert JobType.objects.values().get(pk=jobs.add.name) == before


def test_a_token_creates_only_types_that_fit_its_patterns(program: Programs) -> None:
    client = program("types", job_types=["fleet.*"], queues=["images"])
    for body in ({"name": "shop.x", "queue": "images"}, {"name": NAME}):
        problem(client.send("POST", "/jobs", body), 403, "forbidden")
    answer = client.send("POST", "/jobs", {"name": NAME, "queue": "images"})
    assert answer.status_code == 201
    shared = {"name": "fleet.shared"}  # in the queue "default"
    assert program().send("POST", "/jobs", shared).status_code == 201
    taken = {**shared, "queue": "images", "concurrency": 1}
    problem(client.send("POST", "/jobs", taken), 403, "forbidden")
    others = program("enqueue", "work", "operate", "read")
    problem(others.send("POST", "/jobs", {"name": NAME}), 403, "forbidden")


def test_a_list_has_all_types_of_the_caller_however_many_others_make(
    program: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fleet.1", "fleet.2", "fleet.3", "other.1", "other.2", "fleet%x"):
        JobType.objects.create(name=name)
    JobType.objects.filter(name__in=["fleet.1", "fleet.2"]).update(created_at=MOMENT)
    monkeypatch.setattr(type_routes, "MOST", 1)
    client, shown, query = program("read", job_types=["fleet.*"]), [], ""
    while True:
        page: Any = client.send("GET", f"/jobs{query}").json()  # type: ignore[attr-defined]
        shown += [one["name"] for one in page["job_types"]]
        if page["cursor"] is None:
            break
        query = f"?cursor={page['cursor']}"
    assert shown == ["fleet.3", "fleet.1", "fleet.2"]
    other = client.send("GET", f"/queued-jobs{query}")
    problem(other, 400, "invalid_cursor")


def test_a_program_creates_so_many_types_whatever_others_have(
    program: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type_routes, "MOST_OF_SOME", 2)
    for name, handler in (("other.1", ""), ("other.2", ""), ("fleet.code", "a.b")):
        JobType.objects.create(name=name, handler=handler)
    client = program("types", job_types=["fleet.*"])
    for name in ("fleet.1", "fleet.2"):
        assert client.send("POST", "/jobs", {"name": name}).status_code == 201
    refused = client.send("POST", "/v2/job-types", {"name": "fleet.3"})
    problem(refused, 429, "too_many_job_types")
    changed = client.send("POST", "/jobs", {"name": "fleet.2", "attempts": 2})
    assert changed.status_code == 200
    every = program("types")
    assert every.send("POST", "/jobs", {"name": "fleet.3"}).status_code == 201
    monkeypatch.setattr(type_routes, "MOST_OF_ALL", 5)
    refused = every.send("POST", "/jobs", {"name": "fleet.4"})
    problem(refused, 429, "too_many_job_types")


def test_a_wrong_name_is_compared_with_names_that_the_caller_may_know(
    program: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where Python's functions look for it."""
    compared: set[str] = set()
    near_names = registry.near_names

    def near(name: str, known: Iterable[str]) -> list[str]:
        names = list(known)
        compared.update(names)
        return near_names(name, names)

    for name in ("fleet.resize", "shop.rezise"):
        JobType.objects.create(name=name)
    client = program("read", "operate", job_types=["shop.*"])
    wrong = (
        client.send("GET", "/jobs/shop.resize"),
        client.send("POST", "/jobs/shop.resize/pause"),
        client.send("POST", "/jobs/shop.resize/resume"),
    )
    for answer in wrong:
        said = problem(answer, 404, "job_type_not_found")["detail"]
        assert ("'shop.rezise'" in said, "fleet" in said) == (True, False)
    monkeypatch.setattr(registry, "near_names", near)
    client.send("GET", "/jobs/shop.resize")
    assert "shop.rezise" in compared
    assert {name.partition(".")[0] for name in compared} == {"shop"}
    unseen = str(problem_of(UnknownJobType("shop.resize", ["fleet.resize"])))
    assert "fleet" not in unseen


def test_python_declares_one_as_well() -> None:
    assert operations.declare_job_type(NAME, concurrency=2)
    assert not operations.declare_job_type(NAME, concurrency=4)
    assert JobType.objects.get(pk=NAME).concurrency == 4
    for options, said in (({"atomic": True}, "@job"), ({"colour": 1}, "no option")):
        with pytest.raises(InvalidArguments, match=said):
            operations.declare_job_type(NAME, **options)
