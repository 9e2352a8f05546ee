"""Each ready-made role, and each address: who may do what."""

from __future__ import annotations

from itertools import accumulate

import pytest
from django.test import Client

from django_jobqueue.management.jobqueue.roles import ROLES
from django_jobqueue.operations import bulk
from django_jobqueue.store.bulk.operation_rows import Options
from django_jobqueue.store.bulk.skips import planned
from tests.admin.conftest import LogIn
from tests.admin.endpoints import ALL, OF_MODEL, Endpoint, Keys, keys_of, said, undone
from tests.admin.scene import Scene

# The first role that may do it. What only shows is everybody's, and is left out here.
FIRST = {
    "bulkoperation/<uuid:object_id>/start/": "Job operator",
    "bulkoperation/<uuid:object_id>/pause/": "Job operator",
    "bulkoperation/<uuid:object_id>/resume/": "Job operator",
    "bulkoperation/<uuid:object_id>/stop/": "Job operator",
    "bulkoperation/<uuid:object_id>/undo/": "Job operator",
    "bulkoperation/<uuid:object_id>/step/": "Job operator",
    "erasure/find/": "Job admin",
    "erasure/<uuid:object_id>/erase/": "Job admin",
    "erasure/<uuid:object_id>/delete-rows/": "Job admin",
    "erasure/<uuid:object_id>/resume/": "Job admin",
    "erasure/<uuid:object_id>/step/": "Job admin",
    "erasure/<uuid:object_id>/stop/": "Job admin",
    "failuregroup/<path:object_id>/replay-jobs/": "Job operator",
    "failuregroup/<path:object_id>/resolve-and-replay/": "Job operator",
    "failuregroup/<path:object_id>/cancel-jobs/": "Job operator",
    "failuregroup/<path:object_id>/prune-jobs/": "Job admin",
    "failuregroup/resolve/": "Job operator",
    "failuregroup/ignore/": "Job operator",
    "failuregroup/reopen/": "Job operator",
    "failuregroup/assign/": "Job operator",
    "failuregroup/note/": "Job operator",
    "archivedjob/<path:object_id>/replay_edited/": "Job engineer",
    "archivedjob/<path:object_id>/download/": "Job operator",
    "archivedjob/<path:object_id>/reveal/": "Job admin",
    "archivedjob/free_key/": "Job operator",
    "archivedjob/replay/": "Job operator",
    "archivedjob/prune/": "Job admin",
    "queuedjob/<path:object_id>/edit_data/": "Job engineer",
    "queuedjob/<path:object_id>/download/": "Job operator",
    "queuedjob/<path:object_id>/reveal/": "Job admin",
    "queuedjob/run_now/": "Job operator",
    "queuedjob/reschedule/": "Job operator",
    "queuedjob/cancel/": "Job operator",
    "queuedjob/free_key/": "Job operator",
    "queuedjob/release/": "Job operator",
    "queuedjob/allow_attempts/": "Job operator",
    "queuedjob/fail/": "Job operator",
    "jobsearch/start/": "Job operator",
    "jobsearch/<uuid:object_id>/stop/": "Job operator",
    "jobtype/<path:object_id>/new/": "Job engineer",
    "jobtype/<path:object_id>/change/": "Job engineer",  # overrides; others only look
    "jobtype/clear/": "Job engineer",
    "jobtype/pause/": "Job operator",
    "jobtype/resume/": "Job operator",
    "keylimit/override/": "Job engineer",
    "host/drain/": "Job operator",
    "host/resume/": "Job operator",
    "host/restart/": "Job operator",
    "host/scale/": "Job operator",
    "host/stop/": "Job operator",
    "lease/take-away/": "Job operator",
    "queue/pause-by-name/": "Job operator",
    "queue/pause/": "Job operator",
    "queue/resume/": "Job operator",
    "queuedjob/views/save/": "Job viewer",  # for themselves
    "queuedjob/views/edit/": "Job viewer",
    "queuedjob/views/delete/": "Job viewer",
    "schedule/run/": "Job operator",
    "schedule/pause/": "Job operator",
    "schedule/resume/": "Job operator",
    "schedule/<path:object_id>/edit/": "Job engineer",
    "schedule/reset/": "Job engineer",
    "schedule/remove/": "Job engineer",
    "schedule/new/": "Job engineer",
    "schedule/preview/": "Job engineer",  # a part of the forms
    "token/create/": "Job admin",
    "token/revoke/": "Job admin",
    "worker/drain/": "Job operator",
    "worker/resume/": "Job operator",
    "worker/stop/": "Job operator",
    "worker/restart/": "Job operator",
    "worker/where/": "Job operator",
    "worker/<path:object_id>/stack/": "Job operator",
}
NOBODY = ("add/", "delete/")  # Django's own forms, for no one
RIGHTS = dict(
    zip(ROLES, accumulate(ROLES.values(), lambda more, one: (*more, *one)), strict=True)
)


@pytest.fixture
def keys(scene: Scene) -> Keys:
    """A row of each model."""
    return keys_of(scene)


def does(endpoint: Endpoint) -> bool:
    """Whether it is there to do something, which only a POST can."""
    return str(endpoint) in FIRST


def test_every_address_that_does_something_is_in_the_table() -> None:
    """A POST to any other one is refused, or shows what a GET does."""
    assert set(FIRST) <= {str(endpoint) for endpoint in ALL}
    others = {str(endpoint) for endpoint in ALL} - set(FIRST)
    shows = ("history/", "change/", "<path:object_id>/", "find/", "<uuid:id>/")
    shows += ("export.csv/", "export.jsonl/", "search/", "matrix/", "releases/")
    shows += ("views/", "names/")
    lists = {f"{endpoint.model}/" for endpoint in ALL if endpoint.is_list}
    strangers = others - lists
    assert {one for one in strangers if not one.endswith((*shows, *NOBODY))} == set()


@pytest.mark.parametrize("endpoints", OF_MODEL.values(), ids=OF_MODEL.keys())
@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_what_is_its_own_and_no_more(
    log_in: LogIn, keys: Keys, endpoints: list[Endpoint], role: str
) -> None:
    client = log_in(*RIGHTS[role])
    for endpoint in filter(does, endpoints):
        may = list(ROLES).index(role) >= list(ROLES).index(FIRST[str(endpoint)])
        form = said(endpoint, keys)
        if endpoint.route == "<path:object_id>/change/" and not may:
            form = {"_save": "Save"}
        with undone():
            answer = client.post(endpoint.address(keys), form).status_code
        assert answer in ((200, 302) if may else (403, 405)), endpoint


@pytest.mark.parametrize("endpoints", OF_MODEL.values(), ids=OF_MODEL.keys())
@pytest.mark.parametrize("role", ROLES)
def test_every_role_sees_every_page_that_only_shows(
    log_in: LogIn, keys: Keys, endpoints: list[Endpoint], role: str
) -> None:
    client = log_in(*RIGHTS[role])
    for endpoint in endpoints:
        if does(endpoint) and "change" not in endpoint.route:
            continue
        answer = client.get(endpoint.address(keys)).status_code
        refused = endpoint.route.endswith(NOBODY)
        assert answer in ((403,) if refused else (200, 301, 302)), endpoint


def test_whoever_is_on_call_finds_what_the_night_needs(
    log_in: LogIn, keys: Keys
) -> None:
    """The tour for operators, with the rights of the operator alone."""
    client = log_in(*RIGHTS["Job operator"])
    group, job, worker = (keys[k] for k in ("failuregroup", "queuedjob", "worker"))
    offered = {
        f"/admin/jobqueue/failuregroup/{group}/change/": "Replay failed jobs",
        f"/admin/jobqueue/queuedjob/{job}/change/": "Cancel",
        f"/admin/jobqueue/worker/{worker}/change/": "Show stack",
    }
    for address, label in offered.items():
        assert label in client.get(address).content.decode()
    assert "Drain" in client.get(f"/admin/jobqueue/worker/{worker}/change/").text
    draft = client.post(f"/admin/jobqueue/failuregroup/{group}/replay-jobs/")
    assert started(client, draft.headers["Location"])


def started(client: Client, address: str) -> bool:
    """Start the draft at this address, as its form would."""
    id = address.rstrip("/").split("/")[-2]
    everything = Options(skip_replayed="none", skip_at_most_once=False)
    shown, _skipped = planned("replay", bulk.get(id).counted, everything)
    answer = client.post(
        address.replace("/change/", "/start/"),
        {"shown": shown, "expires": "same", "skip_replayed": "none"},
    )
    return answer.status_code == 302 and bulk.get(id).state == "queued"
