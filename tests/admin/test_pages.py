"""Every screen, with rows of every state; queries do not grow with the rows."""

from __future__ import annotations

import pytest
from django.contrib.admin import site
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_jobqueue.models import (
    ArchivedJob,
    FailureGroup,
    JobType,
    KeyLimit,
    QueuedJob,
    Schedule,
)
from tests.admin import scene as rows
from tests.admin.pages import MODELS, get, list_of, page_of, statements
from tests.admin.scene import ADD, FAIL, LEAK, ONCE, Scene
from tests.store.rows import KEYED

MOST = 25  # objects of a model whose pages are asked for


def keys_of(scene: Scene, model: str) -> list[object]:
    """Every object of this model."""
    return {
        "archivedjob": [*scene.archived.values()],
        "queuedjob": [*scene.queued.values()],
        "worker": [*scene.workers.values()],
        "failuregroup": [scene.group],
        "jobtype": list(JobType.objects.values_list("pk", flat=True)),
        "keylimit": [KEYED],
        "host": [*scene.hosts.values()],
        "lease": [*scene.leases.values()],
        "token": [*scene.tokens.values()],
        "queue": ["mail", "images"],
        "schedule": [*scene.schedules.values()],
    }[model]


@pytest.mark.parametrize("model", MODELS)
def test_a_list_shows_every_row(
    anna: Client, scene: Scene, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The modules of other tests declare hundreds of job types.
    monkeypatch.setattr(site._registry[JobType], "list_per_page", 10_000)
    page = get(anna, list_of(model) + "?all=")
    links = {link.partition("?")[0] for link in page.links}
    assert {page_of(model, key) for key in keys_of(scene, model)} <= links


def test_a_narrow_column_breaks_names_between_their_words(
    anna: Client, scene: Scene
) -> None:
    rows.queued(KEYED, status="running", worker_id=scene.workers["running"])
    pages = [
        *map(list_of, ("archivedjob", "queuedjob", "failuregroup", "jobtype")),
        *map(list_of, ("keylimit", "schedule")),
        page_of("failuregroup", scene.group),
        page_of("archivedjob", scene.archived["failed"]),
        page_of("queuedjob", scene.queued["ready"]),
        page_of("jobtype", FAIL),
        page_of("keylimit", KEYED),
        page_of("worker", scene.workers["running"]),
    ]
    for address in pages:
        assert "tests.<wbr>sample.<wbr>" in get(anna, address).html, address


@pytest.mark.parametrize("model", MODELS)
def test_a_list_without_rows_says_so(anna: Client, model: str) -> None:
    Schedule.objects.all().delete()
    KeyLimit.objects.all().delete()
    JobType.objects.all().delete()
    assert "There are no " in get(anna, list_of(model)).text


@pytest.mark.parametrize("model", MODELS)
def test_every_object_has_a_page_and_a_history(
    anna: Client, scene: Scene, model: str
) -> None:
    for key in keys_of(scene, model)[:MOST]:
        get(anna, page_of(model, key))
        get(anna, page_of(model, key).replace("/change/", "/history/"))


@pytest.mark.parametrize("model", MODELS)
def test_nothing_can_be_added_or_deleted(
    anna: Client, scene: Scene, model: str
) -> None:
    key = keys_of(scene, model)[0]
    get(anna, list_of(model) + "add/", code=403)
    get(anna, page_of(model, key).replace("/change/", "/delete/"), code=403)
    page = get(anna, list_of(model))
    assert "delete_selected" not in page.html


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ready", "ready"),
        ("later", "later"),
        ("retrying", "retrying after failure 2 of 3"),
        ("expiring", "expired, about to be archived"),
        ("paused", "job type paused"),
        ("running", "running on web-1:1"),
        ("cancelling", "cancelling"),
        ("lapsed", "lapsed on web-1:3"),
        ("unclaimed", "running, its worker is gone"),
    ],
)
def test_the_state_of_a_queued_job(
    anna: Client, scene: Scene, name: str, text: str
) -> None:
    assert text in get(anna, page_of("queuedjob", scene.queued[name])).text
    assert text in get(anna, list_of("queuedjob")).text


def test_a_job_of_a_paused_queue_says_so(anna: Client, scene: Scene) -> None:
    id = rows.queued(queue="mail")
    assert "queue paused" in get(anna, page_of("queuedjob", id)).text


def test_the_page_of_a_job_that_succeeded(anna: Client, scene: Scene) -> None:
    page = get(anna, page_of("archivedjob", scene.archived["succeeded"]))
    assert '"sum": 3' in page.text
    assert '{ "a": 1, "b": 2 }' in page.text
    for text in ("succeeded", "ran 2.4 s", "waited 12 ms", ADD):
        assert text in page.text


def test_the_page_of_a_job_that_failed(anna: Client, scene: Scene) -> None:
    page = get(anna, page_of("archivedjob", scene.archived["failed"]))
    for text in (
        "builtins.ValueError : no luck",
        "Traceback (most recent call last):",
        "half way there",
        "release r7",
        "1 / 3",
    ):
        assert text in page.text
    assert page_of("failuregroup", scene.group) in page.links
    assert page_of("jobtype", FAIL) in page.links


def test_the_page_of_a_job_whose_type_is_gone(anna: Client, scene: Scene) -> None:
    page = get(anna, page_of("archivedjob", scene.archived["gone"]))
    assert "shop.removed" in page.text
    assert page_of("jobtype", "shop.removed") not in page.links


def test_a_job_that_was_cancelled_says_why(anna: Client, scene: Scene) -> None:
    page = get(anna, page_of("archivedjob", scene.archived["cancelled"]))
    assert "not wanted" in page.text


def test_a_link_to_a_job_that_is_over_leads_to_the_archive(
    anna: Client, scene: Scene
) -> None:
    id = scene.archived["failed"]
    response = anna.get(page_of("queuedjob", id), follow=True)
    assert response.redirect_chain == [(page_of("archivedjob", id), 302)]
    assert b"This job has finished; it is in the archive." in response.content


def test_a_link_to_a_job_that_is_queued_leads_to_it(anna: Client, scene: Scene) -> None:
    id = scene.queued["ready"]
    response = anna.get(page_of("archivedjob", id), follow=True)
    assert response.redirect_chain == [(page_of("queuedjob", id), 302)]


def test_the_page_of_a_worker_shows_its_jobs(anna: Client, scene: Scene) -> None:
    page = get(anna, page_of("worker", scene.workers["running"]))
    ids = scene.queued["running"], scene.queued["cancelling"]
    assert {page_of("queuedjob", id) for id in ids} <= set(page.links)
    for text in ("default, mail", "python 3.13.1", "76.3 MB"):
        assert text.replace(" ", "") in page.text.replace("\xa0", "").replace(" ", "")


def test_the_page_of_a_worker_that_ended_says_how(anna: Client, scene: Scene) -> None:
    page = get(anna, page_of("worker", scene.workers["lost"]))
    assert "killed: 9" in page.text


def test_the_page_of_a_job_type(anna: Client, scene: Scene) -> None:
    page = get(anna, page_of("jobtype", LEAK))
    for text in ("token", "carl", "leaks", "paused"):
        assert text in page.text
    assert "at most once" in get(anna, page_of("jobtype", ONCE)).text


def test_the_page_of_a_failure_group(anna: Client, scene: Scene) -> None:
    page = get(anna, page_of("failuregroup", scene.group))
    failed = [
        name
        for name, id in scene.archived.items()
        if page_of("archivedjob", id) in page.links
    ]
    assert failed == ["failed", "once", "secret", "gone"]
    assert "Traceback (most recent call last):" in page.text
    (link,) = [link for link in page.links if "fingerprint=" in link]
    assert len(get(anna, link).rows) == 4


def queries(client: Client, address: str) -> int:
    """How many queries a page takes; the second time, when it is warm."""
    get(client, address)
    with CaptureQueriesContext(connection) as captured:
        get(client, address)
    return len(statements(captured))


@pytest.mark.parametrize(
    ("model", "most"),
    [
        ("archivedjob", 10),
        ("queuedjob", 14),
        ("failuregroup", 12),
        ("jobtype", 12),
        ("queue", 12),
        ("schedule", 11),
        ("keylimit", 9),
        ("host", 9),
        ("lease", 9),
        ("token", 9),
        ("worker", 9),
    ],
)
def test_queries_of_a_list_do_not_grow_with_its_rows(
    anna: Client, scene: Scene, model: str, most: int
) -> None:
    few = queries(anna, list_of(model))
    for _ in range(3):
        for id in scene.archived.values():
            again = ArchivedJob.objects.get(pk=id)
            again.pk = rows.archived(replay_of=id)
            again.save(force_update=True)
        for id in scene.queued.values():
            again = QueuedJob.objects.get(pk=id)
            again.pk = rows.queued()
            again.save(force_update=True)
        rows.schedule(str(rows.uuid4()))
        rows.host(str(rows.uuid4()))
        rows.lease(str(rows.uuid4()))
        worker = rows.worker()
        rows.queued(status="running", worker_id=worker)
        group = FailureGroup.objects.get(pk=scene.group)
        group.pk = rows.uuid4()
        group.save(force_insert=True)
    assert queries(anna, list_of(model)) == few
    assert few <= most


@pytest.mark.parametrize("model", ["archivedjob", "queuedjob"])
def test_a_list_of_jobs_reads_no_data_and_counts_no_table(
    anna: Client, scene: Scene, model: str
) -> None:
    with CaptureQueriesContext(connection) as captured:
        get(anna, list_of(model))
    statements = [query["sql"] for query in captured.captured_queries]
    assert not [text for text in statements if f'"jobqueue_{model}"."data"' in text]
    assert not [text for text in statements if f'"jobqueue_{model}"."result"' in text]
    assert not [text for text in statements if "COUNT(" in text]


@pytest.mark.parametrize(("model", "most"), [("archivedjob", 13), ("queuedjob", 17)])
def test_queries_of_a_job_with_many_attempts_and_replays(
    anna: Client, scene: Scene, model: str, most: int
) -> None:
    found = {
        "archivedjob": scene.archived["failed"],
        "queuedjob": scene.queued["ready"],
    }
    address = page_of(model, found[model])
    queries(anna, address)
    for number in range(60):
        rows.Failure.objects.create(
            job_id=found[model], job_type=FAIL, number=number, end="failed"
        )
        rows.archived(replay_of=found[model])
    assert queries(anna, address) <= most
