"""Who may see and do what: denied unless it was given, page by page.

What holds for every address, found by itself, is in ``test_endpoints``.
"""

from __future__ import annotations

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client

from django_jobqueue.models import (
    ArchivedJob,
    FailureGroup,
    Host,
    JobType,
    KeyLimit,
    Lease,
    Queue,
    QueuedJob,
    Schedule,
    Token,
    Worker,
)
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.pages import MODELS, get, list_of, page_of, verb_of
from tests.admin.scene import ADD, FAIL, Scene
from tests.store.rows import KEYED

# Every verb: its model, its name, and the right that it needs.
VERBS = [
    ("archivedjob", "replay", "replay_archivedjob"),
    ("host", "drain", "control_worker"),
    ("host", "restart", "control_worker"),
    ("host", "resume", "control_worker"),
    ("host", "scale", "control_worker"),
    ("host", "stop", "control_worker"),
    ("jobtype", "pause", "pause_jobtype"),
    ("jobtype", "resume", "pause_jobtype"),
    ("keylimit", "override", "change_keylimit"),
    ("lease", "take-away", "take_away_lease"),
    ("queue", "pause", "pause_queue"),
    ("queue", "resume", "pause_queue"),
    ("queue", "pause-by-name", "pause_queue"),
    ("queuedjob", "cancel", "cancel_queuedjob"),
    ("queuedjob", "reschedule", "reschedule_queuedjob"),
    ("queuedjob", "run_now", "reschedule_queuedjob"),
    ("schedule", "pause", "pause_schedule"),
    ("schedule", "run", "run_schedule"),
    ("token", "revoke", "manage_token"),
    ("worker", "drain", "control_worker"),
    ("worker", "restart", "control_worker"),
    ("worker", "resume", "control_worker"),
    ("worker", "stop", "control_worker"),
    ("worker", "where", "control_worker"),
]
TABLES = (
    *(
        ArchivedJob,
        FailureGroup,
        Host,
        JobType,
        KeyLimit,
        Lease,
        Queue,
        QueuedJob,
        Schedule,
        Token,
        Worker,
    ),
    LogEntry,
)


def key_for(scene: Scene, model: str) -> object:
    """An object that each verb of this model would change."""
    return {
        "archivedjob": scene.archived["failed"],
        "failuregroup": scene.group,
        "host": scene.hosts["asked"],
        "jobtype": ADD,
        "keylimit": KEYED,
        "lease": scene.leases["held"],
        "queue": "mail",
        "queuedjob": scene.queued["later"],
        "schedule": scene.schedules["overridden"],
        "token": scene.tokens["billing"],
        "worker": scene.workers["running"],
    }[model]


def everything() -> list[object]:
    """All rows of all tables."""
    return [list(table._default_manager.order_by("pk").values()) for table in TABLES]


def ask(client: Client, scene: Scene, model: str, verb: str) -> int:
    """The status of the page that asks."""
    query = {"keys": str(key_for(scene, model))}
    return client.get(verb_of(model, verb), query).status_code


def act(client: Client, scene: Scene, model: str, verb: str) -> int:
    """The status of the confirmed verb."""
    said = {
        "keys": str(key_for(scene, model)),
        "confirmed": "1",
        "reason": "because",
        "name": "images",
        "priority": "3",
        "concurrency": "3",
        "processes": "3",
    }
    return client.post(verb_of(model, verb), said).status_code


@pytest.mark.parametrize(("model", "verb", "right"), VERBS)
def test_a_verb_needs_its_right(
    log_in: LogIn, scene: Scene, model: str, verb: str, right: str
) -> None:
    client = log_in(f"view_{model}", right)
    assert ask(client, scene, model, verb) == 200
    assert act(client, scene, model, verb) == 302
    assert LogEntry.objects.count() == 1


@pytest.mark.parametrize(("model", "verb", "right"), VERBS)
def test_all_other_rights_do_not_allow_it(
    log_in: LogIn, scene: Scene, model: str, verb: str, right: str
) -> None:
    others = Permission.objects.filter(content_type__app_label="jobqueue")
    client = log_in(*others.exclude(codename=right).values_list("codename", flat=True))
    before = everything()
    assert ask(client, scene, model, verb) == 403
    assert act(client, scene, model, verb) == 403
    assert everything() == before


@pytest.mark.parametrize(("model", "verb", "right"), VERBS)
def test_a_verb_needs_the_right_to_see_its_objects(
    log_in: LogIn, scene: Scene, model: str, verb: str, right: str
) -> None:
    client = log_in(right)
    before = everything()
    assert ask(client, scene, model, verb) == 403
    assert act(client, scene, model, verb) == 403
    assert everything() == before


@pytest.mark.parametrize("model", MODELS)
def test_a_viewer_sees_and_is_offered_nothing(
    viewer: Client, scene: Scene, model: str
) -> None:
    page = get(viewer, list_of(model))
    assert page.all("select", name="action") == []
    page = get(viewer, page_of(model, key_for(scene, model)))
    assert page.all("input", type="submit") == []
    fields = [*page.all("textarea"), *page.all("select")]
    assert [field for field in fields if "name" in field] == []
    forbidden = {verb_of(m, verb) for m, verb, _ in VERBS}
    assert not forbidden & {link.partition("?")[0] for link in page.links}


@pytest.mark.parametrize("model", MODELS)
def test_a_viewer_can_change_nothing(viewer: Client, scene: Scene, model: str) -> None:
    before = everything()
    key = key_for(scene, model)
    form = {
        "state": "resolved",
        "assignee": "bert",
        "notes": "x",
        "priority_override": "9",
        "data": "{}",
        "queue": "x",
        "_save": "Save",
    }
    assert viewer.post(page_of(model, key), form).status_code == 403
    for _, verb, _ in VERBS:
        selected = {"action": verb, "_selected_action": [str(key)]}
        assert viewer.post(list_of(model), selected).status_code in (200, 302)
    assert everything() == before


@pytest.mark.parametrize("model", ["archivedjob", "queue", "queuedjob", "worker"])
def test_no_form_changes_a_row_not_even_a_superusers(
    anna: Client, scene: Scene, model: str
) -> None:
    before = everything()
    address = page_of(model, key_for(scene, model))
    assert anna.post(address, {"queue": "x", "_save": "Save"}).status_code == 403
    assert everything() == before


@pytest.mark.parametrize("model", MODELS)
def test_without_the_right_to_see_there_is_no_page(
    log_in: LogIn, scene: Scene, model: str
) -> None:
    client = log_in(*(right for right in VIEWS if right != f"view_{model}"))
    get(client, list_of(model), code=403)
    get(client, page_of(model, key_for(scene, model)), code=403)


def test_links_lead_only_where_the_user_may_go(log_in: LogIn, scene: Scene) -> None:
    client = log_in("view_archivedjob")
    pages = [
        get(client, list_of("archivedjob")),
        get(client, page_of("archivedjob", scene.archived["failed"])),
    ]
    links = {link for page in pages for link in page.links}
    seen = {found[1] for link in links if (found := re.search(r"queue/(\w+)/", link))}
    assert seen == {"archivedjob"}


def test_a_redirect_to_the_archive_tells_nothing_to_who_may_not_see_it(
    log_in: LogIn, scene: Scene
) -> None:
    client = log_in("view_queuedjob")
    response = client.get(page_of("queuedjob", scene.archived["failed"]))
    assert response.headers["Location"] == "/admin/"
    page = get(client, list_of("queuedjob"), q=str(scene.archived["failed"]))
    assert "archive" not in page.text.lower()


def test_offered_verbs_are_those_that_apply(anna: Client, scene: Scene) -> None:
    def offered(model: str, key: object) -> set[str]:
        paths = {
            link.partition("?")[0] for link in get(anna, page_of(model, key)).links
        }
        return {
            verb for m, verb, _ in VERBS if m == model and verb_of(m, verb) in paths
        }

    waiting = {"cancel", "reschedule", "run_now"}
    assert offered("queuedjob", scene.queued["later"]) == waiting
    assert offered("queuedjob", scene.queued["running"]) == {"cancel"}
    assert offered("archivedjob", scene.archived["succeeded"]) == {"replay"}
    assert offered("worker", scene.workers["stopped"]) == set()
    always = {"restart", "stop"}
    assert offered("worker", scene.workers["running"]) == {"drain", *always}
    assert offered("worker", scene.workers["draining"]) == {"resume", *always}
    assert offered("jobtype", FAIL) == {"pause"}
    assert offered("queue", "mail") == {"resume"}


def test_who_may_change_overrides_may_not_pause(log_in: LogIn, scene: Scene) -> None:
    client = log_in("view_jobtype", "change_jobtype")
    page = get(client, page_of("jobtype", FAIL))
    assert page.all("input", name="priority_override")
    assert verb_of("jobtype", "pause") not in page.html


def test_the_right_to_see_data_is_one_of_its_own(log_in: LogIn, scene: Scene) -> None:
    rows = QueuedJob.objects.filter(pk=scene.queued["ready"])
    rows.update(data={"order": 4711, "lines": [{"sku": "anchor"}], "note": None})
    address = page_of("queuedjob", scene.queued["ready"])
    page = get(log_in("view_queuedjob"), address)
    assert "4711" not in page.html
    assert "anchor" not in page.html
    for shape in ('"order": number', '"sku": text', '"note": nothing'):
        assert shape in page.text
    page = get(log_in("view_queuedjob", "view_job_data", name="carl"), address)
    assert '"order": 4711' in page.text
    result = page_of("archivedjob", scene.archived["succeeded"])
    assert '"sum": number' in get(log_in("view_archivedjob", name="d"), result).text
