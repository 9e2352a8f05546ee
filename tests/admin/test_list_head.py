"""Above a list: states as tabs, what it is narrowed by, and filters that are typed."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from django_jobqueue.models import ArchivedJob, QueuedJob
from tests.admin import scene as rows
from tests.admin.pages import Page, get, list_of
from tests.admin.scene import FAIL, Scene


def current(page: Page, label: str) -> dict[str, list[str]]:
    """The parameters of the link of the tab that is shown."""
    (tab,) = [
        attrs
        for attrs in page.all("a")
        if attrs.get("aria-current") and (attrs["href"] or "").startswith("?")
    ]
    assert label in page.text
    return parse_qs(urlsplit(str(tab["href"])).query)


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [("archivedjob", "status", "failed"), ("queuedjob", "state", "lapsed")],
)
def test_states_are_tabs(
    anna: Client, scene: Scene, model: str, name: str, value: str
) -> None:
    assert current(get(anna, list_of(model)), "All") == {}
    page = get(anna, list_of(model), **{name: value, "queue": "default"})
    assert current(page, value.capitalize()) == {name: [value], "queue": ["default"]}
    assert f"By {name}" not in page.text


def without(page: Page) -> dict[str, dict[str, list[str]]]:
    """The conditions above the list, and what is left of the address without each."""
    return {
        str(attrs["aria-label"]).removeprefix("without "): parse_qs(
            urlsplit(str(attrs["href"])).query
        )
        for attrs in page.all("a")
        if str(attrs.get("aria-label", "")).startswith("without ")
    }


def test_each_condition_can_be_taken_away(anna: Client, scene: Scene) -> None:
    query = {
        "status": "failed",
        "queue": "default",
        "finished_at__range__gte_0": "2001-01-01",
        "q": 'error:ValueError type:"tests.sample.fail"',
    }
    chips = without(get(anna, list_of("archivedjob"), **query))
    assert list(chips) == [
        "failed",
        "default",
        "2001-01-01 00:00:00 UTC – ",
        "error:ValueError",
        'type:"tests.sample.fail"',
    ]
    everything = {name: [value] for name, value in query.items()}
    assert chips["failed"] == {k: v for k, v in everything.items() if k != "status"}
    assert chips["default"] == {k: v for k, v in everything.items() if k != "queue"}
    assert "finished_at__range__gte_0" not in chips["2001-01-01 00:00:00 UTC – "]
    assert chips["error:ValueError"]["q"] == ['type:"tests.sample.fail"']


def test_without_conditions_there_is_nothing_to_take_away(
    anna: Client, scene: Scene
) -> None:
    assert without(get(anna, list_of("archivedjob"))) == {}


def test_what_is_not_understood_can_be_taken_away(anna: Client, scene: Scene) -> None:
    page = get(anna, list_of("archivedjob"), q='type:"x', priority="many")
    assert without(page)['type:"x'] == {"priority": ["many"]}
    assert without(page)["many"] == {"q": ['type:"x']}


def shown(client: Client, scene: Scene, model: str, **query: str) -> set[str]:
    """Which jobs of the scene are in the list."""
    found = get(client, list_of(model), **query).rows
    jobs = scene.queued if model == "queuedjob" else scene.archived
    return {name for name, id in jobs.items() if str(id) in found}


def test_filters_that_are_typed(anna: Client, scene: Scene) -> None:
    failed = {"failed", "once", "secret", "gone"}
    ArchivedJob.objects.filter(pk=scene.archived["once"]).update(
        priority=5, worker='web "1":7'
    )
    assert shown(anna, scene, "archivedjob", priority="5") == {"once"}
    assert shown(anna, scene, "archivedjob", priority=" > 0 ") == {"once"}
    assert "once" not in shown(anna, scene, "archivedjob", priority="-9..4")
    assert shown(anna, scene, "archivedjob", worker='web "1":7') == {"once"}
    assert shown(anna, scene, "archivedjob", error="ValueError") == failed
    assert shown(anna, scene, "queuedjob", error="ValueError") == {"retrying"}
    on_the_worker = shown(anna, scene, "queuedjob", worker="web-1:1")
    assert on_the_worker == {"running", "cancelling"}
    assert len(shown(anna, scene, "archivedjob", priority=" ")) == len(scene.archived)


def test_replayed_or_not(anna: Client, scene: Scene) -> None:
    rows.queued(FAIL, replay_of=scene.archived["failed"])
    assert shown(anna, scene, "archivedjob", replayed="yes") == {"failed"}
    rest = scene.archived.keys() - {"failed"}
    assert shown(anna, scene, "archivedjob", replayed="no") == rest
    assert shown(anna, scene, "archivedjob", replayed="x") == set()


def test_a_filter_that_is_not_understood_shows_nothing_and_says_why(
    anna: Client, scene: Scene
) -> None:
    page = get(anna, list_of("archivedjob"), priority="high")
    assert page.rows == []
    why = "No rows, because “priority” is not clear: “high” is no whole number."
    assert why in page.text


def test_what_runs_longest_comes_first_on_every_page(anna: Client, db: None) -> None:
    now = timezone.now()
    worker = rows.worker()
    ids = [
        str(
            rows.queued(
                status="running",
                attempts=1,
                worker_id=worker,
                started_at=now - timedelta(minutes=number // 2),
            )
        )
        for number in range(120)
    ]
    ordered = [
        str(pk)
        for pk in QueuedJob.objects.order_by("started_at", "pk").values_list(
            "pk", flat=True
        )
    ]
    assert ordered != sorted(ids)
    first = get(anna, list_of("queuedjob"), state="running")
    (link,) = [str(a["href"]) for a in first.all("a", rel="next")]
    second = get(anna, list_of("queuedjob") + link)
    (link,) = [str(a["href"]) for a in second.all("a", rel="next")]
    third = get(anna, list_of("queuedjob") + link)
    assert first.rows + second.rows + third.rows == ordered
    (link,) = [str(a["href"]) for a in third.all("a", rel="prev")]
    assert get(anna, list_of("queuedjob") + link).rows == second.rows
