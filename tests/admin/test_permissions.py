"""Who may see and do what: denied unless it was given, right by right.

What holds for every address, found by itself, is in ``test_endpoints``, and what each
role may do in ``test_roles``.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from django_jobqueue.models import QueuedJob
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.endpoints import everything, keys_of, nothing_written
from tests.admin.pages import MODELS, get, list_of, page_of, verb_of
from tests.admin.scene import FAIL, Scene
from tests.admin.units import buttons
from tests.support.undone import undone

# Every verb, by the right that it needs.
RIGHTS = {
    "cancel_queuedjob": "queuedjob/cancel queuedjob/fail",
    "change_keylimit": "keylimit/override",
    "control_worker": "host/drain host/restart host/resume host/scale host/stop"
    " worker/drain worker/restart worker/resume worker/stop worker/where",
    "free_unique_key": "archivedjob/free_key queuedjob/free_key",
    "manage_token": "token/revoke",
    "pause_jobtype": "jobtype/pause jobtype/resume",
    "pause_queue": "queue/pause queue/resume queue/pause-by-name",
    "pause_schedule": "schedule/pause",
    "replay_archivedjob": "archivedjob/replay",
    "release_queuedjob": "queuedjob/release",
    "reschedule_queuedjob": "queuedjob/allow_attempts queuedjob/reschedule"
    " queuedjob/run_now",
    "run_schedule": "schedule/run",
    "take_away_lease": "lease/take-away",
}
VERBS = {verb for verbs in RIGHTS.values() for verb in verbs.split()}
FORM = {"confirmed": "1", "reason": "because", "name": "images"}
FORM |= dict.fromkeys(("priority", "concurrency", "max_attempts", "processes"), "3")


def test_a_verb_needs_its_right_and_that_to_see_its_objects(
    log_in: LogIn, scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", logger="django.request")
    client, user = log_in(), get_user_model().objects.get()
    rights = Permission.objects.filter(content_type__app_label__startswith="jobqueue")
    every = {one.codename: one for one in rights}
    keys, wrong = keys_of(scene), []
    before = everything()

    def answers(name: str) -> set[int]:
        """To the question, and to its confirmation."""
        model, verb = name.split("/")
        address, form = verb_of(model, verb), {**FORM, "keys": str(keys[model])}
        asked = client.get(address, {"keys": form["keys"]}).status_code
        return {asked, client.post(address, form).status_code}

    for right, verbs in RIGHTS.items():
        views = {f"view_{verb.partition('/')[0]}" for verb in verbs.split()}
        for given, expected in (
            ({*views, right}, {200, 302}),
            ({*views, *RIGHTS} - {right}, {403}),
            ({right}, {403}),  # of who may not see
        ):
            user.user_permissions.set([every[name] for name in given])
            for verb in verbs.split():
                with undone():
                    if (found := answers(verb)) != expected:
                        wrong.append((verb, sorted(given), found))
    assert wrong == []
    assert everything() == before


def test_without_the_right_to_see_there_is_no_page(
    log_in: LogIn, scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", logger="django.request")
    client, user = log_in(*VIEWS), get_user_model().objects.get()
    keys = keys_of(scene)
    for model in MODELS:
        user.user_permissions.set(
            Permission.objects.filter(codename__in={*VIEWS} - {f"view_{model}"})
        )
        get(client, list_of(model), code=403)
        get(client, page_of(model, keys[model]), code=403)
    # Nor is there a link, or a redirect, that tells of it.
    failed = scene.archived["failed"]
    client = log_in("view_archivedjob", name="carl")
    shown = (list_of("archivedjob"), page_of("archivedjob", failed))
    links = {link for address in shown for link in get(client, address).links}
    seen = {found[1] for link in links if (found := re.search(r"queue/(\w+)/", link))}
    assert seen == {"archivedjob"}
    client = log_in("view_queuedjob", name="dora")
    response = client.get(page_of("queuedjob", failed))
    assert response.headers["Location"] == "/admin/"
    page = get(client, list_of("queuedjob"), q=str(failed))
    assert "archive" not in page.text.lower()
    client = log_in("view_jobtype", "change_jobtype", name="eve")
    page = get(client, page_of("jobtype", FAIL))
    assert page.all("input", name="priority_override")
    assert verb_of("jobtype", "pause") not in page.html


def test_no_form_changes_a_row_not_even_a_superusers(
    anna: Client, scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", logger="django.request")
    keys = keys_of(scene)
    with nothing_written():
        for model in ("archivedjob", "queue", "queuedjob", "worker"):
            form = {"queue": "x", "_save": "Save"}
            assert anna.post(page_of(model, keys[model]), form).status_code == 403


def test_offered_verbs_are_those_that_apply(anna: Client, scene: Scene) -> None:
    def offered(model: str, key: Any) -> set[str]:
        return {
            verb for verb in buttons(anna, model, key) if f"{model}/{verb}" in VERBS
        }

    always = {"restart", "stop"}
    of_waiting = {"allow_attempts", "cancel", "fail", "reschedule", "run_now"}
    for model, key, verbs in (
        ("queuedjob", scene.queued["later"], of_waiting),
        ("queuedjob", scene.queued["running"], {"cancel", "release"}),
        ("archivedjob", scene.archived["succeeded"], {"replay"}),
        ("worker", scene.workers["stopped"], set()),
        ("worker", scene.workers["running"], {"drain", *always}),
        ("worker", scene.workers["draining"], {"resume", *always}),
        ("jobtype", FAIL, {"pause"}),
        ("queue", "mail", {"resume"}),
    ):
        assert offered(model, key) - {"where"} == verbs, (model, key)


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
