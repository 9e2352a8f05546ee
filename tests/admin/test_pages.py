"""Lists and pages of objects, with rows of every state."""

from __future__ import annotations

from django.test import Client

from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.models import JobType, KeyLimit
from tests.admin import scene as rows
from tests.admin import units
from tests.admin.pages import MODELS, get, list_of, page_of
from tests.admin.scene import ADD, FAIL, LEAK, ONCE, Scene
from tests.store.rows import KEYED


def test_a_list_shows_every_row_and_each_has_a_page(anna: Client, scene: Scene) -> None:
    """Of others each state has its page below, or in their own tests."""
    narrow = ("archivedjob", "queuedjob", "failuregroup", "jobtype", "keylimit")
    for model, keys in {
        "archivedjob": scene.archived.values(),
        "queuedjob": scene.queued.values(),
        "worker": scene.workers.values(),
        "failuregroup": [scene.group],
        "jobtype": [FAIL],
        "keylimit": [KEYED],
        "host": scene.hosts.values(),
        "lease": scene.leases.values(),
        "token": scene.tokens.values(),
        "queue": ["mail", "images"],
        "schedule": scene.schedules.values(),
    }.items():
        # The modules of other tests declare hundreds of job types.
        query = {"q": "tests.sample.f"} if model == "jobtype" else {}
        page = get(anna, list_of(model), **query)
        links = {link.partition("?")[0] for link in page.links}
        assert {page_of(model, key) for key in keys} <= links, model
        # A narrow column breaks names between their words.
        assert "tests.<wbr>sample.<wbr>" in page.html or model not in narrow, model
        for key in keys if model in ("archivedjob", "host", "worker") else ():
            assert units.context(anna, model, key)["original"].pk == key
    assert "tests.<wbr>sample.<wbr>" in get(anna, page_of("jobtype", FAIL)).html


def test_a_list_without_rows_says_so(anna: Client) -> None:
    for model in (Schedule, KeyLimit, JobType):
        model.objects.all().delete()
    for name in MODELS:
        assert "There are no " in get(anna, list_of(name)).text, name


def test_the_state_of_a_queued_job(anna: Client, scene: Scene) -> None:
    states = {
        "ready": "ready",
        "later": "later",
        "retrying": "retrying after failure 2 of 3",
        "expiring": "expired, about to be archived",
        "paused": "job type paused",
        "running": "running on web-1:1",
        "cancelling": "cancelling",
        "lapsed": "lapsed on web-1:3",
        "unclaimed": "running, its worker is gone",
    }
    listed = get(anna, list_of("queuedjob")).text
    for name, text in states.items():
        assert text in get(anna, page_of("queuedjob", scene.queued[name])).text
        assert text in listed
    id = rows.queued(queue="mail")
    assert "queue paused" in get(anna, page_of("queuedjob", id)).text


def test_a_page_says_what_became_of_its_object(anna: Client, scene: Scene) -> None:
    archived, workers = scene.archived, scene.workers
    for model, key, *texts in (
        (
            *("archivedjob", archived["succeeded"], '"sum": 3', '{ "a": 1, "b": 2 }'),
            *("succeeded", "ran 2.4 s", "waited 12 ms", ADD),
        ),
        (
            *("archivedjob", archived["failed"], "builtins.ValueError : no luck"),
            *("Traceback (most recent call last):", "half way there"),
            *("release r7", "1 / 3"),
        ),
        ("archivedjob", archived["gone"], "shop.removed"),
        ("archivedjob", archived["cancelled"], "not wanted"),
        ("worker", workers["running"], "default, mail", "python 3.13.1", "76.3 MB"),
        ("worker", workers["lost"], "killed: 9"),
        ("jobtype", LEAK, "token", "carl", "leaks", "paused"),
        ("jobtype", ONCE, "at most once"),
        ("failuregroup", scene.group, "Traceback (most recent call last):"),
    ):
        text = get(anna, page_of(model, key)).text.replace("\xa0", " ")
        assert [one for one in texts if one not in text] == [], (model, key)


def test_pages_lead_to_each_other(anna: Client, scene: Scene) -> None:
    failed = get(anna, page_of("archivedjob", scene.archived["failed"])).links
    assert page_of("failuregroup", scene.group) in failed
    assert page_of("jobtype", FAIL) in failed
    gone = get(anna, page_of("archivedjob", scene.archived["gone"])).links
    assert page_of("jobtype", "shop.removed") not in gone
    worker = get(anna, page_of("worker", scene.workers["running"])).links
    ids = scene.queued["running"], scene.queued["cancelling"]
    assert {page_of("queuedjob", id) for id in ids} <= set(worker)
    group = get(anna, page_of("failuregroup", scene.group)).links
    jobs = [
        k for k, id in scene.archived.items() if page_of("archivedjob", id) in group
    ]
    assert jobs == ["failed", "once", "secret", "gone"]
    (link,) = [link for link in group if "fingerprint=" in link]
    assert len(get(anna, link).rows) == 4
    # A link to a job leads to where it is now, whatever it says.
    id = scene.archived["failed"]
    response = anna.get(page_of("queuedjob", id), follow=True)
    assert response.redirect_chain == [(page_of("archivedjob", id), 302)]
    assert b"This job has finished; it is in the archive." in response.content
    id = scene.queued["ready"]
    response = anna.get(page_of("archivedjob", id))
    assert response.headers["Location"] == page_of("queuedjob", id)
