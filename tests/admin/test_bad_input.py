"""Whatever is typed into an address gives a page, never an error of the server."""

from __future__ import annotations

import base64
import json
from itertools import product
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client

from tests.admin import scene as rows
from tests.admin.pages import MODELS, get, list_of, page_of, post, select, verb_of
from tests.admin.scene import Scene
from tests.support.selection import some_slow

NOBODY = "00000000-0000-7000-8000-000000000000"  # an id that no job has
NONSENSE = (
    "",
    "x",
    "-1",
    "9" * 40,
    "\x00",
    "' OR 1=1 --",
    "\ud7ff\U0010ffff",
    "a" * 3_000,
    "2026-13-45",
    "25:61:61",
    "12:00:00+25:00",
    "0001-01-01",
    "9999-12-31",
    "null",
)
ALWAYS = ("x", "9" * 40, "\x00", "9999-12-31")
PARAMETERS = {
    "archivedjob": [
        *("status", "job_type", "queue", "fingerprint", "q", "after", "before"),
        *("since", "o", "p", "e", "all", "_facets", "_popup"),
        *("priority", "worker", "error", "replayed"),
        *(
            f"{name}_at__range__{end}_{part}"
            for name in ("finished", "created")
            for end in ("gte", "lte")
            for part in "01"
        ),
    ],
    "queuedjob": [
        *("state", "job_type", "queue", "q", "after", "before", "since", "o", "p"),
        *("priority", "worker", "error"),
        *(f"run_after__range__{end}_{part}" for end in ("gte", "lte") for part in "01"),
    ],
    "auditentry": [
        *("verb", "by", "q", "o", "p", "all", "after", "before"),
        *(f"at__range__{end}_{part}" for end in ("gte", "lte") for part in "01"),
    ],
    "alert": [
        *("state", "condition", "q", "o", "p", "all", "after", "before"),
        *(f"fired_at__range__{end}_{part}" for end in ("gte", "lte") for part in "01"),
    ],
    "failuregroup": ["state", "q", "o", "p", "all"],
    "jobtype": ["q", "o", "p", "all"],
    "schedule": ["state", "origin", "job_type", "q", "o", "p", "all"],
    "keylimit": ["q", "o", "p", "all"],
    "host": ["state", "q", "o", "p", "all"],
    "lease": ["state", "q", "o", "p", "all"],
    "queue": ["q", "o", "p", "all"],
    "token": ["state", "q", "o", "p", "all"],
    "worker": ["q", "o", "p", "all"],
}


@pytest.mark.parametrize("text", some_slow(NONSENSE, ALWAYS))
@pytest.mark.parametrize("model", PARAMETERS)
def test_nonsense_in_any_parameter_gives_a_page(
    anna: Client, scene: Scene, model: str, text: str
) -> None:
    for name in PARAMETERS[model]:
        response = anna.get(list_of(model), {name: text}, follow=True)
        assert response.status_code == 200, name


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/Los_Angeles"])
@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_the_ends_of_time_give_a_page(
    anna: Client, scene: Scene, settings: Any, zone: str, day: str
) -> None:
    settings.TIME_ZONE = zone
    for name in ("gte", "lte"):
        get(anna, list_of("archivedjob"), **{f"finished_at__range__{name}_0": day})


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("archivedjob", "data__token__startswith"),
        ("archivedjob", "error_message__icontains"),
        ("archivedjob", "id__exact"),
        ("archivedjob", "job_type__sensitive__contains"),
        ("archivedjob", "finished_at__gte"),
        ("queuedjob", "data__token"),
        ("queuedjob", "fence"),
        ("jobtype", "paused_reason__regex"),
        ("worker", "supervisor"),
        ("failuregroup", "notes__contains"),
    ],
)
def test_what_is_no_filter_cannot_be_asked_for(
    anna: Client, scene: Scene, model: str, name: str
) -> None:
    """Guess by guess such an address would tell what a user may not see."""
    response = anna.get(list_of(model), {name: "1"})
    assert response.status_code in (302, 400)
    if response.status_code == 302:
        assert response.headers["Location"].endswith("?e=1")


@pytest.mark.parametrize("key", ["x", "0", "\x00", NOBODY, "9" * 40, "a/b", "_"])
@pytest.mark.parametrize("model", MODELS)
def test_a_key_of_nothing_leads_back(anna: Client, model: str, key: str) -> None:
    for address in (
        page_of(model, key),
        page_of(model, key).replace("change", "history"),
    ):
        response = anna.get(address, follow=True)
        assert response.status_code in (200, 404), address


VERBS = [
    ("archivedjob", "replay"),
    ("jobtype", "pause"),
    ("queue", "resume"),
    ("queuedjob", "cancel"),
    ("worker", "stop"),
]


@pytest.mark.parametrize(("model", "verb"), VERBS)
@pytest.mark.parametrize("keys", ["", "x", "\x00", "\n\n", "9" * 40, NOBODY])
def test_a_verb_on_nothing_changes_nothing_and_says_so(
    anna: Client, scene: Scene, model: str, verb: str, keys: str
) -> None:
    said = {"keys": keys, "confirmed": "1", "reason": "x"}
    page = post(anna, verb_of(model, verb), said)
    assert "Nothing of what was selected is here any more." in page.text
    page = get(anna, verb_of(model, verb), code=302, keys=keys)
    page = post(anna, list_of(model), {"action": verb, "_selected_action": [keys]})
    assert "elected" in page.text


@pytest.mark.parametrize(("model", "verb"), VERBS)
def test_nothing_selected_changes_nothing_and_says_so(
    anna: Client, scene: Scene, model: str, verb: str
) -> None:
    page = select(anna, model, verb)
    assert "Items must be selected" in page.text


def test_too_many_are_refused_as_a_whole(anna: Client, scene: Scene) -> None:
    ids = [str(uuid4()) for _ in range(1_000)] + [str(scene.archived["failed"])]
    said = {"keys": "\n".join(ids), "confirmed": "1"}
    page = post(anna, verb_of("archivedjob", "replay"), said)
    assert "At most 1,000 can be selected at once. Nothing was changed" in page.text
    assert rows.QueuedJob.objects.count() == len(scene.queued)


@pytest.mark.parametrize(
    "there",
    [
        "https://evil.example/",
        "//evil.example/",
        "javascript:alert(1)",
        "\\\\evil.example",
        "http:///evil.example",
    ],
)
def test_no_address_leads_away_from_the_site(
    anna: Client, scene: Scene, there: str
) -> None:
    keys = {"keys": str(scene.queued["later"]), "next": there}
    page = get(anna, verb_of("queuedjob", "run_now"), **keys)
    assert "evil" not in page.html
    response = anna.post(verb_of("queuedjob", "run_now"), {**keys, "confirmed": "1"})
    assert response.headers["Location"] == list_of("queuedjob")


@pytest.mark.parametrize(
    "values",
    [["2026-11-21T00:00:00", NOBODY], ["x", "y"], [1, 2], [], {}, "x", [None]],
)
@pytest.mark.parametrize("name", ["after", "before", "since"])
def test_a_position_that_is_none_leads_to_the_list(
    anna: Client, scene: Scene, name: str, values: object
) -> None:
    text = base64.urlsafe_b64encode(json.dumps(values).encode()).decode()
    response = anna.get(list_of("archivedjob"), {name: text})
    assert response.status_code == 302
    assert response.headers["Location"].endswith("?e=1")


RAW = {
    "deep": "[" * 3_000 + "]" * 3_000,
    "deep objects": '{"a":' * 1_500 + "1" + "}" * 1_500,
    "long number": "1" * 5_000,
    "great number": "1e400",
    "scalar": '"token"',
    "null": "null",
}


@pytest.mark.parametrize("text", RAW.values(), ids=RAW)
@pytest.mark.parametrize("job_type", [rows.ADD, rows.LEAK])
def test_data_that_only_sql_can_write_has_a_page(
    anna: Client, viewer: Client, text: str, job_type: str
) -> None:
    id = rows.archived(job_type)
    waiting = rows.queued(job_type)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobqueue_archivedjob SET data = %s, result = %s", [text] * 2
        )
        cursor.execute("UPDATE jobqueue_queuedjob SET data = %s", [text])
    for client, (model, key) in product(
        (anna, viewer), [("archivedjob", id), ("queuedjob", waiting)]
    ):
        get(client, page_of(model, key))
        get(client, list_of(model))
    get(anna, verb_of("archivedjob", "replay"), keys=str(id))


def test_states_that_only_sql_can_write_have_a_page(anna: Client, scene: Scene) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobqueue_worker SET state = 'odd', queues = '[1, null]'")
        cursor.execute("UPDATE jobqueue_failuregroup SET state = 'odd'")
        cursor.execute("UPDATE jobqueue_failure SET \"end\" = 'odd'")
    for model in ("worker", "failuregroup"):
        get(anna, list_of(model))
    get(anna, page_of("worker", scene.workers["running"]))
    get(anna, page_of("failuregroup", scene.group))
    get(anna, page_of("archivedjob", scene.archived["failed"]))
