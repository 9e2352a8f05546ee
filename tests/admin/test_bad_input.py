"""Whatever is typed into an address gives a page, never an error of the server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from itertools import cycle, product
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.db import connection
from django.test import Client

from tests.admin import scene as rows
from tests.admin import units
from tests.admin.endpoints import models_with_pages
from tests.admin.pages import MODELS, get, list_of, page_of, post, verb_of
from tests.admin.scene import Scene

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
OF_ANY_LIST = (
    "q",
    "after",
    "before",
    "since",
    "o",
    "p",
    "e",
    "all",
    "_facets",
    "_popup",
)
LISTS_OF_EACH_SORT = ("archivedjob", "auditentry", "jobtype")
# What the admin answers with the list as it is.
REFUSED = (DisallowedModelAdminLookup, IncorrectLookupParameters)


def look(client: Client, model: str, name: str, text: str) -> None:
    """Make the list with this parameter, and all that its page shows of it."""
    try:
        page = units.listing(client, model, **{name: text})
    except REFUSED:
        return
    assert page.result_list is not None
    assert all(list(spec.choices(page)) is not None for spec in page.filter_specs)
    assert [getattr(page, name, None) for name in ("tabs", "active", "count_text")]


def parameters(client: Client) -> Iterator[tuple[str, str]]:
    """All that an address of a list can have: the model, and the parameter; those of
    filters that several lists share only once."""
    seen: set[tuple[type, str]] = set()
    yield "archivedjob", "fingerprint"  # has a filter only while it is used
    for model in models_with_pages():
        if (name := str(model._meta.model_name)) not in ("overview", "savedview"):
            specs = units.listing(client, name).filter_specs
            others = OF_ANY_LIST if name in LISTS_OF_EACH_SORT else ("q", "after")
            yield from product([name], others)
            of_filters = {
                (type(one), n) for one in specs for n in one.expected_parameters()
            }
            yield from (
                (name, one) for _type, one in sorted(of_filters - seen, key=str)
            )
            seen |= of_filters


def test_nonsense_in_any_parameter_gives_a_page(anna: Client, scene: Scene) -> None:
    texts = cycle(NONSENSE)
    for model, name in parameters(anna):
        look(anna, model, name, next(texts))
    for model in LISTS_OF_EACH_SORT:
        response = anna.get(list_of(model), {"q": "\x00", "all": "x"}, follow=True)
        assert response.status_code == 200


@pytest.mark.slow("every parameter with every nonsense")
def test_any_nonsense_in_any_parameter_gives_a_page(anna: Client, scene: Scene) -> None:
    for (model, name), text in product(parameters(anna), NONSENSE):
        response = anna.get(list_of(model), {name: text}, follow=True)
        # No list has all of these; what one has not cannot be asked for.
        allowed = {200, 400} if name in OF_ANY_LIST else {200}
        assert response.status_code in allowed, (model, name, text)


def test_the_ends_of_time_give_a_page(
    anna: Client, scene: Scene, settings: Any
) -> None:
    for zone in ("Pacific/Auckland", "America/Los_Angeles"):
        settings.TIME_ZONE = zone
        for day, end in product(("0001-01-01", "9999-12-31"), ("gte", "lte")):
            get(anna, list_of("archivedjob"), **{f"finished_at__range__{end}_0": day})


def test_what_is_no_filter_or_position_cannot_be_asked_for(
    anna: Client, scene: Scene
) -> None:
    """Guess by guess such an address would tell what a user may not see."""
    guesses = [
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
    ]
    for model, name in guesses:
        response = anna.get(list_of(model), {name: "1"})
        where = response.headers.get("Location", "?e=1")
        assert response.status_code in (302, 400), name
        assert where.endswith("?e=1"), name
    for value in (["2026-11-21T00:00:00", NOBODY], ["x", "y"], [1, 2], [], {}, "x"):
        text = base64.urlsafe_b64encode(json.dumps(value).encode()).decode()
        for name in ("after", "before", "since"):
            response = anna.get(list_of("archivedjob"), {name: text})
            assert response.status_code == 302
            assert response.headers["Location"].endswith("?e=1"), (name, value)


def test_a_key_of_nothing_leads_back(anna: Client, db: None) -> None:
    odd = ("x", "0", "\x00", NOBODY, "9" * 40, "a/b", "_")
    asked = [page_of(model, key) for model, key in product(MODELS, odd)]
    asked += [
        page_of(*one).replace("change", "history") for one in zip(MODELS, cycle(odd))
    ]
    for address in asked:
        assert anna.get(address).status_code in (302, 404), address


def test_a_verb_on_nothing_changes_nothing_and_says_so(
    anna: Client, scene: Scene
) -> None:
    nothing = "The selected rows no longer exist."
    for model, verb in (
        ("archivedjob", "replay"),
        ("jobtype", "pause"),
        ("queue", "resume"),
        ("queuedjob", "cancel"),
        ("worker", "stop"),
    ):
        for keys in ("", "x\n\x00\n\n" + "9" * 40, NOBODY):
            said = {"keys": keys, "confirmed": "1", "reason": "x"}
            assert nothing in units.press(anna, verb_of(model, verb), **said)
            assert anna.get(verb_of(model, verb), {"keys": keys}).status_code == 302
            response = anna.post(
                list_of(model), {"action": verb, "_selected_action": keys}
            )
            assert "elected" in units.told(response) + response.text, (model, keys)
        told = units.press(anna, list_of(model), action=verb, index=0)
        assert "Items must be selected" in told
    ids = [str(uuid4()) for _ in range(1_000)] + [str(scene.archived["failed"])]
    too_many = {"keys": "\n".join(ids), "confirmed": "1"}
    page = post(anna, verb_of("archivedjob", "replay"), too_many)
    assert "At most 1,000 can be selected at once. Nothing was changed" in page.text
    assert rows.QueuedJob.objects.count() == len(scene.queued)


def test_no_address_leads_away_from_the_site(anna: Client, scene: Scene) -> None:
    for there in (
        "https://evil.example/",
        "//evil.example/",
        "javascript:alert(1)",
        "\\\\evil.example",
        "http:///evil.example",
    ):
        said = {"keys": str(scene.queued["later"]), "next": there}
        assert "evil" not in get(anna, verb_of("queuedjob", "run_now"), **said).html
        said["confirmed"] = "1"
        response = anna.post(verb_of("queuedjob", "run_now"), said)
        assert response.headers["Location"] == list_of("queuedjob")


def test_data_that_only_sql_can_write_has_a_page(anna: Client, viewer: Client) -> None:
    texts = (
        *("[" * 3_000 + "]" * 3_000, '{"a":' * 1_500 + "1" + "}" * 1_500),
        *("1" * 5_000, "1e400", '"token"', "null"),
    )
    tables = {"archivedjob": rows.archived, "queuedjob": rows.queued}
    made = []
    job_types = (rows.ADD, rows.LEAK, rows.LEAK, rows.ADD)
    with connection.cursor() as cursor:
        for (text, model), job_type in zip(product(texts, tables), cycle(job_types)):
            id = tables[model](job_type)
            made.append((model, id))
            for column in ("data",) if model == "queuedjob" else ("result", "data"):
                statement = f"UPDATE jobqueue_{model} SET {column} = %s WHERE id = %s"
                cursor.execute(statement, [text, id])
    for (model, id), client in zip(made, cycle((anna, viewer, viewer, anna))):
        get(client, page_of(model, id))
    for client, model in ((anna, "archivedjob"), (viewer, "queuedjob")):
        get(client, list_of(model))
    keys = [str(id) for model, id in made if model == "archivedjob"]
    get(anna, verb_of("archivedjob", "replay"), keys="\n".join(keys))


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
