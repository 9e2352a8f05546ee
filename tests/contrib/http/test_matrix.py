"""Each operation of the API: callers that may, and callers that may not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.test import override_settings

from django_jobqueue import enqueue
from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.bulk.bulk_actions import STOP
from django_jobqueue.admin.jobs.cancel import CancelJobs
from django_jobqueue.admin.jobs.new_job import NewJob
from django_jobqueue.admin.jobs.prune import PruneJobs
from django_jobqueue.admin.jobs.replay import ReplayJobs
from django_jobqueue.admin.jobs.reschedule import RescheduleJobs, RunJobsNow
from django_jobqueue.admin.types.pause import Pause, Resume
from django_jobqueue.contrib.http.api import build
from django_jobqueue.contrib.http.endpoint import router
from django_jobqueue.contrib.http.token_scopes import RIGHTS as OF_SCOPES
from django_jobqueue.contrib.http.token_scopes import Scope
from django_jobqueue.domain.states import BulkKind
from django_jobqueue.models import BulkOperation, JobType
from django_jobqueue.operations import bulk
from django_jobqueue.operations.bulk_rights import RIGHTS
from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.store.bulk import count_jobs
from tests.contrib.http.conftest import Program, problem
from tests.contrib.http.test_callers import USERS
from tests.sample import jobs

# Every operation, the scope of programs, and the permissions of users.
OPERATIONS = {
    "PUT /v1/jobs/{job_type}/{id}": ("enqueue", "enqueue_job"),
    "POST /v1/jobs/{job_type}": ("enqueue", "enqueue_job"),
    "GET /v1/jobs/{job_type}/{id}": ("read", "view_queuedjob"),
    "PATCH /v1/jobs/{job_type}/{id}": (
        "operate",
        "reschedule_queuedjob view_queuedjob",
    ),
    "GET /v1/jobs/{job_type}": ("read", "view_queuedjob"),
    "GET /v1/jobs": ("read", "view_jobtype"),
    "POST /v1/jobs": ("types", "change_jobtype view_jobtype"),
    "POST /v2/job-types": ("types", "change_jobtype view_jobtype"),
    "GET /v1/archived-jobs": ("read", "view_archivedjob"),
    "GET /v1/queued-jobs": ("read", "view_queuedjob"),
    "GET /v2/job-types": ("read", "view_jobtype"),
    "GET /v2/job-types/{job_type}": ("read", "view_jobtype"),
    "POST /v1/jobs/{id}/replay": ("operate", "replay_archivedjob view_archivedjob"),
    "POST /v1/jobs/{job_type}/{id}/replay": (
        "operate",
        "replay_archivedjob view_archivedjob",
    ),
    "POST /v1/jobs/{id}/cancel": ("operate", "cancel_queuedjob view_queuedjob"),
    "POST /v1/jobs/{id}/run-now": ("operate", "reschedule_queuedjob view_queuedjob"),
    "POST /v1/jobs/{id}/fail": ("operate", "cancel_queuedjob view_queuedjob"),
    "POST /v1/jobs/{id}/release": ("operate", "release_queuedjob view_queuedjob"),
    "POST /v1/jobs/{job_type}/pause": ("operate", "pause_jobtype view_jobtype"),
    "POST /v1/jobs/{job_type}/resume": ("operate", "pause_jobtype view_jobtype"),
    "POST /v1/queues/{queue}/pause": ("operate", "pause_queue view_queue"),
    "POST /v1/queues/{queue}/resume": ("operate", "pause_queue view_queue"),
    "GET /v1/status": ("read", "view_overview"),
    "GET /v1/queues": ("read", "view_queue"),
    "GET /v1/workers": ("read", "view_worker"),
    "GET /v1/failures": ("read", "view_failuregroup"),
    "POST /v1/workers": ("work", "work_remotely"),
    "POST /v1/workers/{worker}/claim": ("work", "work_remotely"),
    "PUT /v1/workers/{worker}": ("work", "work_remotely"),
    "DELETE /v1/workers/{worker}": ("work", "work_remotely"),
    "POST /v1/jobs/{job_type}/{id}": ("work", "work_remotely"),
    "POST /v1/operations": ("operate", "start_bulkoperation view_bulkoperation"),
    "GET /v1/operations": ("read", "view_bulkoperation"),
    "GET /v1/operations/{operation}": ("read", "view_bulkoperation"),
    "POST /v1/operations/{operation}/stop": (
        "operate",
        "start_bulkoperation view_bulkoperation",
    ),
}
PERMISSIONS = {
    one for _scope, several in OPERATIONS.values() for one in several.split()
}
REMOTE = "fleet.resize"  # no code declares it
BODIES: dict[str, Any] = {
    "POST /v1/jobs": {"name": REMOTE},
    "POST /v2/job-types": {"name": REMOTE},
    "POST /v1/workers": {"name": "node", "job_types": [REMOTE]},
    "POST /v1/jobs/{job_type}/{id}": {"worker": 1, "fence": 1, "status": "failed"},
    "PUT /v1/jobs/{job_type}/{id}": {"data": {"a": 1}},
    "POST /v1/jobs/{job_type}": {"jobs": [{"data": {"a": 1}}]},
    "PATCH /v1/jobs/{job_type}/{id}": {"priority": 1},
    "POST /v1/jobs/{id}/fail": {"reason": "no such order"},
    "POST /v1/operations": {"kind": "cancel", "where": "", "dry_run": True},
}
# What the caller has done before, or what the scene does not have.
PASSED = (200, 201, 202, 400, 409)

pytestmark = pytest.mark.django_db


def registered() -> Iterator[tuple[str, tuple[str, str]]]:
    """What the code says of each operation."""
    build()
    for path, view in router.path_operations.items():
        for operation in view.operations:
            access = operation.auth_param
            permissions = []
            for named in access.permissions:
                app, _, permission = named.partition(".")
                assert app == "jobqueue"
                permissions.append(permission)
            for method in operation.methods:
                yield f"{method} {path}", (str(access.scope), " ".join(permissions))


def test_each_operation_has_its_scope_and_a_permission_that_there_is() -> None:
    assert dict(registered()) == OPERATIONS
    known = Permission.objects.filter(content_type__app_label="jobqueue")
    assert set(known.values_list("codename", flat=True)) >= PERMISSIONS
    for scope, permissions in OPERATIONS.values():  # who gives it to a token
        assert {*permissions.split()} <= {*OF_SCOPES[Scope(scope)]}


@pytest.fixture
def send() -> Callable[[Program, str], Any]:
    """Sends a request for things that there are."""
    job = jobs.add.enqueue(a=1)
    JobType.objects.create(name=REMOTE)
    operation = bulk.draft("cancel", Selection(Table.QUEUED))
    values = {
        "job_type": "tests.sample.add",
        "queue": "default",
        "operation": str(operation.id),
    }

    def ask(client: Program, name: str) -> Any:
        method, _, path = name.partition(" ")
        id = f"job_{uuid4() if method == 'PUT' else job.id}"
        worker, body = 1, BODIES.get(name)
        if OPERATIONS[name][0] == "work" and path != "/v1/workers":
            worker = registered_by(client)
        names = {**values, "worker": worker}
        if name == "POST /v1/jobs/{job_type}/{id}":
            names["job_type"] = REMOTE
            id, body = claimed_by(client, worker) or (id, body)
        path = path.format(**names, id=id).removeprefix("/v1")
        return client.send(method, path, body)

    return ask


def registered_by(client: Program) -> int:
    """The id of a worker of this caller; any number if it may have none."""
    body = {"name": "node", "job_types": [REMOTE]}
    sent = client.send("POST", "/workers", body)
    return int(sent.json()["id"]) if sent.status_code == 201 else 1


def claimed_by(client: Program, worker: int) -> tuple[str, dict[str, Any]] | None:
    """A job that it holds, and what ends it."""
    enqueue(REMOTE, {})
    sent = client.send("POST", f"/workers/{worker}/claim", {"limit": 1})
    if sent.status_code != 200:
        return None
    (job,) = sent.json()["jobs"]
    return job["id"], {"worker": worker, "fence": job["fence"], "status": "succeeded"}


VERBS: dict[str, Action] = {  # what the admin does by the same name
    "PUT /v1/jobs/{job_type}/{id}": NewJob(),
    "POST /v1/jobs/{job_type}": NewJob(),
    "PATCH /v1/jobs/{job_type}/{id}": RescheduleJobs(),
    "POST /v1/jobs/{id}/replay": ReplayJobs(),
    "POST /v1/jobs/{job_type}/{id}/replay": ReplayJobs(),
    "POST /v1/jobs/{id}/cancel": CancelJobs(),
    "POST /v1/jobs/{id}/run-now": RunJobsNow(),
    "POST /v1/jobs/{job_type}/pause": Pause(),
    "POST /v1/jobs/{job_type}/resume": Resume(),
    "POST /v1/queues/{queue}/pause": Pause(queues=True),
    "POST /v1/queues/{queue}/resume": Resume(queues=True),
    "POST /v1/operations/{operation}/stop": STOP,
}
OF_MANY: dict[BulkKind, Action] = {
    BulkKind.REPLAY: ReplayJobs(),
    BulkKind.CANCEL: CancelJobs(),
    BulkKind.RUN_NOW: RunJobsNow(),
    BulkKind.RESCHEDULE: RescheduleJobs(),
    BulkKind.PRUNE: PruneJobs(),
}


def test_a_verb_needs_the_permissions_of_the_action_in_the_admin() -> None:
    """Which asks for those to see the page as well."""
    for operation, action in VERBS.items():
        _scope, permissions = OPERATIONS[operation]
        seen = {one for one in permissions.split() if one.startswith("view_")}
        assert {*permissions.split()} - seen == {*action.rights}, operation
        assert seen or operation.endswith(("/{job_type}", "/{job_type}/{id}"))
    assert OF_MANY.keys() == RIGHTS.keys()
    for kind, action in OF_MANY.items():
        assert action.rights == (RIGHTS[kind],), kind


def allow(user: User, codenames: Collection[str]) -> None:
    """Let the user do this, and nothing else."""
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))


@pytest.mark.dear
@USERS
@pytest.mark.parametrize("name", ["programs", "users"])
def test_who_may_do_what(
    name: str, program: Callable[..., Program], send: Callable[[Program, str], Any]
) -> None:
    nobody, user = Program(), User.objects.create_user("bert")
    scopes = {scope: program(scope) for scope in Scope}
    others = {s: program(*({*Scope} - {s, Scope.READ_DATA})) for s in Scope}
    foreign = program(*Scope, job_types=["shop.*"], queues=["mail"])
    member = Program()
    member.force_login(user)
    for operation, (scope, permissions) in OPERATIONS.items():
        if name == "programs":
            problem(send(nobody, operation), 401, "missing_authentication")
            problem(send(others[Scope(scope)], operation), 403, "forbidden")
            passed = send(scopes[Scope(scope)], operation)
            assert passed.status_code in PASSED, (operation, passed.content)
            sent = send(foreign, operation)
            is_empty = sent.status_code == 200 and (
                not any(sent.json().values()) or sent.json().get("total") == 0
            )
            assert is_empty or sent.status_code in (403, 404), operation
        else:
            for missing in permissions.split():
                allow(user, PERMISSIONS - {missing})
                problem(send(member, operation), 403, "forbidden")
            allow(user, {*permissions.split(), "cancel_queuedjob", "view_queuedjob"})
            passed = send(member, operation)
            seen = (404,) if operation.startswith("GET /v1/jobs/{") else ()
            assert passed.status_code in (*PASSED, *seen), (operation, passed.content)


def test_a_user_needs_what_the_admin_asks_for_to_change_many_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(count_jobs, "FEW", 0)
    jobs.add.enqueue(a=1)
    user, client = User.objects.create_user("bert"), Program()
    client.force_login(user)
    needed = {
        *("start_bulkoperation", "view_bulkoperation"),
        *("cancel_queuedjob", "view_queuedjob"),
    }
    most = {"kind": "cancel", "where": ""}
    tried, one = {**most, "dry_run": True}, {**most, "where": "priority:>5"}
    with override_settings(
        JOBQUEUE={"HTTP_AUTH": ["django_jobqueue.contrib.http.auth.DjangoUser"]}
    ):
        for missing in needed:
            allow(user, needed - {missing})
            for body in (most, tried, one):
                problem(client.send("POST", "/operations", body), 403, "forbidden")
        allow(user, needed)
        assert client.send("POST", "/operations", tried).status_code == 200
        problem(client.send("POST", "/operations", most), 403, "forbidden")
        assert not BulkOperation.objects.exists()
        jobs.add.using(priority=9).enqueue(a=1)
        jobs.add.enqueue(a=1)
        assert client.send("POST", "/operations", one).status_code == 202
        allow(user, needed | {"unbounded_bulkoperation"})
        assert client.send("POST", "/operations", most).status_code == 202
