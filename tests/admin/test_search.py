"""The search box of the lists, and one search over queued and archived jobs: what is
found, what a bare value could mean, and who may search in what."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from django_jobqueue.admin.lists.change_list import JobChangeList
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob
from django_jobqueue.search.ids import id_search
from tests.admin import scene as rows
from tests.admin import units
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.pages import Page, get, list_of, page_of
from tests.admin.scene import ADD, DAY, FAIL, LEAK, MINUTE, ONCE, SECRET, Scene
from tests.support.tables import differing

SEARCH = reverse("admin:jobqueue_search")
JUMP = reverse("admin:jobqueue_jump")
DATA = (*VIEWS, "view_job_data")
ARCHIVED = [
    (f"type:{ONCE}", "once"),
    ("type:write_once", "once"),
    ("type:rite_onc", "once"),
    ("type:shop.removed", "gone"),
    ("type:nothing_like_it", ""),
    ("status:cancelled", "cancelled"),
    ("queue:images", "succeeded"),
    ("worker:web-1:1", "failed"),
    ("by:anna", "failed"),
    ("tag:eu", "failed"),
    ("release:r7", "failed"),
    ("error:ValueError", "failed gone once secret"),
    ("error:builtins.ValueError type:tests.sample.fail", "failed"),
    ("attempts:4..9 priority:>=5", "failed"),
    ("ran:>20s", "failed"),
    ("waited:<1s status:succeeded", "succeeded"),
    ("finished:<-1d", "succeeded"),
    ("finished:>-1h type:tests.sample.fail", "failed"),
    ("replayed:yes", "failed"),
    ("data.order.id:7", "failed"),
    ('data.order.name:"Ann Lee" data.paid:true', "failed"),
    ('data.order.id:"7"', "failed"),
    ("data.a:1 data.b:2", "succeeded"),
    (f"type:{FAIL} type:{ADD}", ""),
    # Words: of an error, or of the name of a job type.
    ("NO LUCK status:failed type:write_once", "once"),
    ('"no luck" fail', "failed"),
    ('"luck no"', ""),
    ("not wanted", "cancelled"),
    ("valueerror", "failed gone once secret"),
    ("tests.sample.fail", "failed"),
    ("removed", "gone"),
    ("no_such_word", ""),
    ("%", ""),
]
QUEUED = [
    ("state:ready", "expiring paused ready"),
    ("status:retrying", "retrying"),
    ("state:lapsed", "lapsed unclaimed"),
    ("worker:web-1:1", "cancelling running"),
    ("error:ValueError", "retrying"),
    ("tag:vip", "later"),
    ("due:>now type:tests.sample.fail", "retrying"),
    ("data.a:1", "ready"),
    ("leak", "paused"),
    (f"{FAIL} luck", "retrying"),
]


def search(client: Client, text: str, model: str = "archivedjob", **query: str) -> Any:
    return units.listing(client, model, q=text, **query)


def ids(page: Any) -> set[str]:
    return {str(job.pk) for job in page.result_list}


def everywhere(client: Client, text: str) -> Page:
    return get(client, SEARCH, q=text)


def test_jobs_by_terms_and_words(anna: Client, scene: Scene) -> None:
    failed = scene.archived["failed"]
    ArchivedJob.objects.filter(pk=failed).update(
        worker="web-1:1",
        enqueued_by="anna",
        tags=["vip", "eu"],
        attempts=5,
        priority=7,
        run_ms=30_000,
        release="r7",
        data={"order": {"id": 7, "name": "Ann Lee"}, "paid": True},
    )
    ArchivedJob.objects.filter(pk=scene.archived["succeeded"]).update(
        finished_at=timezone.now() - 3 * DAY, queue="images"
    )
    QueuedJob.objects.filter(pk=scene.queued["later"]).update(
        replay_of=failed, tags=["vip"]
    )
    names = {str(id): k for k, id in (scene.queued | scene.archived).items()}

    def found(model: str, text: str) -> str:
        return " ".join(sorted(names[id] for id in units.shown(anna, model, q=text)))

    cases = [("archivedjob", *one) for one in ARCHIVED]
    cases += [("queuedjob", *one) for one in QUEUED]
    cases += [("queuedjob", f"replay-of:{failed}", "later")]
    assert differing(cases, found) == []
    assert "Nothing matches." in get(anna, list_of("archivedjob"), q="no_such").text
    rows.JobType.objects.create(name="other.add")
    page = search(anna, "type:add")
    assert ids(page) == set()
    text = "More than one job type has “add” in its name: other.add, "
    assert text in page.notes
    assert f", {ADD}" in page.notes


# Ids.


def test_a_job_is_found_by_its_id_as_a_whole_in_short_or_in_part(
    anna: Client, scene: Scene
) -> None:
    id, other = str(scene.archived["failed"]), str(scene.archived["once"])
    short = f"{id[:8]}…{id[-6:]}"
    whole = (id, id.upper(), f" {id} ", id.replace("-", ""), f"job_{id}", short)
    assert [text for text in whole if ids(search(anna, text)) != {id}] == []
    assert short in get(anna, list_of("archivedjob")).text
    assert id in ids(search(anna, id[:13]))
    assert ids(search(anna, f"{id} {other}")) == {id, other}
    assert ids(search(anna, f"{id} {other} type:tests.sample.fail")) == {id}
    begin = id_search("01a1fefc-a7")
    assert begin is not None
    assert str(begin.first) == "01a1fefc-a700-0000-0000-000000000000"
    assert str(begin.last) == "01a1fefc-a7ff-ffff-ffff-ffffffffffff"
    assert not begin.is_exact
    # One that is elsewhere is linked.
    for model, there in (("archivedjob", "queuedjob"), ("queuedjob", "archivedjob")):
        job = scene.queued["later"] if there == "queuedjob" else scene.archived["once"]
        assert page_of(there, job) in search(anna, str(job), model).notes
    begins = [
        rows.archived_row(id=f"abcdef00-{str(rows.uuid4())[9:]}") for _ in range(60)
    ]
    rows.insert_all(ArchivedJob, begins)
    page = search(anna, "abcdef")
    assert len(ids(page)) == 50
    assert "Several jobs begin like this. Give more of the id." in page.notes


def test_what_is_not_understood_reads_no_job_and_says_why(
    anna: Client, scene: Scene
) -> None:
    no_id = "Jobs are searched by id: a whole one, or at least its first 6"
    for text, why in (
        *((f"id:{bad}", no_id) for bad in ("order", "abc", "zzzzzzzz", "…", "…abc123")),
        *(
            (bad, "")
            for bad in ("tpye:x", "id:order 7", 'type:"', "ran:>soon", "type:")
        ),
    ):
        with CaptureQueriesContext(connection) as captured:
            page = search(anna, text)
            assert ids(page) == set()
        assert why in page.notes
        assert f"{SEARCH}?q=" in page.notes, text
        assert not [q for q in captured if 'FROM "jobqueue_archivedjob"' in q["sql"]]


# Tags.


def test_tags_are_shown_and_lead_to_the_jobs_that_have_them(
    anna: Client, db: None
) -> None:
    tags = ["vip", "two words", 'a "quoted" one', "back\\slash", "<b>bold</b>", "ünïc"]
    for model, make in (("archivedjob", rows.archived), ("queuedjob", rows.queued)):
        jobs = [str(make(tags=some)) for some in ([*tags[:2], "other"], tags[2:])]
        other = str(make(tags=["other"]))
        listed = get(anna, list_of(model)).text
        assert [tag for tag in tags[:5] if tag not in listed] == []
        for job, here in zip(jobs, ([*tags[:2], "other"], tags[2:]), strict=True):
            page = get(anna, page_of(model, job))
            assert [tag for tag in here if tag not in page.text] == []
            links = [str(one["href"]) for one in page.all("a", **{"class": "jq-tag"})]
            found = [units.following(anna, model, f"?{x.split('?')[1]}") for x in links]
            expected = [{job, other} if tag == "other" else {job} for tag in here]
            assert [ids(one) for one in found] == expected
    ArchivedJob.objects.all().delete()
    for none in (None, [], {"a": 1}, "text", 7, [7, None]):
        odd = rows.archived(tags=none)
    assert "jq-tag" not in get(anna, page_of("archivedjob", odd)).html
    assert "jq-tag" not in get(anna, list_of("archivedjob")).html
    many = rows.archived(tags=[f"tag-{n}" for n in range(9)])
    text = get(anna, list_of("archivedjob")).text
    assert "tag-0 tag-1 tag-2 +6" in text
    assert "tag-3" not in text
    assert "tag-8" in get(anna, page_of("archivedjob", many)).text


# Data, and who may search in them.


def test_secrets_are_searched_only_by_those_who_may_reveal_them(
    log_in: LogIn, scene: Scene
) -> None:
    JobType.objects.filter(name=LEAK).update(sensitive=["token", "Pin"])
    blind, reader = log_in(*VIEWS), log_in(*DATA, name="rita")
    page = search(blind, "data.order.id:7")
    assert ids(page) == set()
    assert "You may not view the data of jobs" in page.notes
    why = "is a sensitive key: you may not view its values"
    for text, job_type in (
        (f'data.token:"{SECRET}"', ""),
        (f'data.user.Token.x:"{SECRET}"', ""),
        (f'type:{LEAK} data.token:"{SECRET}"', ""),
        ("data.api_key:7", ""),
        ("data.password.x:7", ""),
        (f"type:{LEAK} data.PIN:7", ""),
        ("data.pin:7", ""),
        ("data.pin:7", LEAK),
    ):
        more = {"job_type": job_type} if job_type else {}
        page = search(reader, text, **more)
        assert ids(page) == set(), text
        assert why in page.notes, text
    # Elsewhere it is no secret.
    found = {str(rows.archived(FAIL, data={"pin": 7}))}
    assert ids(search(reader, f"type:{FAIL} data.pin:7")) == found
    assert ids(search(reader, "data.pin:7", job_type=FAIL)) == found
    revealer = log_in(*DATA, "reveal_job_data", name="dora")
    found = ids(search(revealer, f'data.token:"{SECRET}"'))
    assert found == {str(scene.archived["secret"])}


def test_data_are_searched_everywhere_only_with_an_index(
    anna: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JobChangeList, "window", 30)  # the next one is searched for
    oldest = timezone.now() - 9 * DAY
    wanted = {str(rows.archived(finished_at=oldest, data={"order": 7}))}
    others = [rows.archived_row(data={"order": n + 100}) for n in range(30)]
    rows.insert_all(ArchivedJob, others)
    page = search(anna, "data.order:7")
    assert ids(page) == set()
    assert ids(units.following(anna, "archivedjob", page.search_older_link)) == wanted
    page = get(anna, list_of("archivedjob"), q="data.order:7")
    assert "Searched the newest 30 jobs only" in page.text
    (button,) = [one for one in page.all("button") if "data-go" in one]
    assert "hidden" in button  # without its script a link does it
    assert "Searched back to" in everywhere(anna, "data.order:7").text
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE INDEX shop_job_data ON jobqueue_archivedjob"
            " USING gin (data jsonb_path_ops)"
        )
    page = search(anna, "data.order:7")
    assert ids(page) == wanted
    assert page.searched_back_to is None
    assert search(anna, "tag:x").searched_back_to is not None


def test_jobs_that_ran_at_a_time_are_found_by_start_and_end(
    anna: Client, db: None
) -> None:
    two = datetime(2026, 3, 3, 2, tzinfo=UTC)

    def ran(start: int, end: int) -> str:
        started, finished = two + start * MINUTE, two + end * MINUTE
        return str(rows.archived(started_at=started, finished_at=finished))

    ran(-9, -5), ran(11, 12)
    during = {ran(-5, 3), ran(4, 6), ran(8, 20), ran(-30, 60)}
    query = "finished:>=2026-03-03T02:00 started:<=2026-03-03T02:10"
    assert ids(search(anna, query)) == during
    running = str(rows.queued(status="running", started_at=two))
    rows.queued()
    assert ids(search(anna, "started:2026-03-03", "queuedjob")) == {running}


# Everywhere.


@pytest.fixture
def orders(scene: Scene) -> list[str]:
    """Jobs with 4711 in different places: their pages."""
    first = rows.archived(data={"order_id": 4711})
    second = rows.archived(FAIL, "failed", data={"order": {"id": "4711"}})
    third = rows.queued(data={"order_id": "4711"})
    rows.archived(data={"order_id": 47110, "note": "4711 and more", "all": [4711]})
    rows.archived(data={'a key.with: "all"': "x y"})
    return [
        page_of("archivedjob", first),
        page_of("archivedjob", second),
        page_of("queuedjob", third),
    ]


def test_a_value_offers_the_searches_that_it_could_mean(
    anna: Client, orders: list[str], scene: Scene
) -> None:
    page = everywhere(anna, "4711")
    assert "“4711” could mean" in page.text
    assert "data.order_id:4711 1 1 data.order.id:4711 0 1" in page.text
    assert "Nothing matches." not in page.text
    (link, *_others) = [link for link in page.links if "data.order_id" in link]
    typed = [f"{SEARCH}?q=data.order_id:4711", f'{SEARCH}?q=data.order_id:"4711"']
    for address in (link, *typed):  # numbers and texts are both found
        found = set(get(anna, address).links)
        assert {orders[0], orders[2]} <= found
        assert orders[1] not in found
    (link,) = [x for x in everywhere(anna, '"x y"').links if "data." in x]
    job = ArchivedJob.objects.latest("created_at")  # whose key no name can be
    assert page_of("archivedjob", job.pk) in get(anna, link).links
    # The box above each page, and a list that does not understand, lead there.
    assert anna.get(JUMP, {"to": "4711"})["Location"] == f"{SEARCH}?q=4711"
    assert f"{SEARCH}?q=4711" in get(anna, list_of("archivedjob"), q="4711").links
    # Job types and failures by their words.
    page = everywhere(anna, "no luck")
    assert page_of("failuregroup", scene.group) in page.links
    assert page_of("archivedjob", scene.archived["failed"]) in page.links
    assert page_of("jobtype", ADD) in everywhere(anna, ADD).links
    assert everywhere(anna, "nowhere").text.count("Nothing matches.") == 2


def test_only_what_the_user_may_see_is_searched(
    log_in: LogIn, orders: list[str]
) -> None:
    assert "data.order_id" not in everywhere(log_in(*VIEWS), "4711").text
    rows.archived(LEAK, data={"token": "4711", "card": "4711"})
    JobType.objects.filter(name=LEAK).update(sensitive=["card"])
    text = everywhere(log_in(*DATA, name="carl"), "4711").text
    assert "data.order_id:4711" in text
    assert "data.token" not in text
    assert "data.card" not in text
    revealer = log_in(*DATA, "reveal_job_data", name="dora")
    assert "data.card:4711" in everywhere(revealer, "4711").text
    client = log_in("view_queuedjob", "view_job_data", name="eve")
    page = everywhere(client, "data.order_id:4711")
    assert orders[2] in page.links
    assert orders[0] not in page.links
    assert client.get(SEARCH).status_code == 200
    assert log_in(name="nobody").get(SEARCH).status_code == 403


def test_keys_that_summaries_name_are_offered_for_older_jobs(
    anna: Client, log_in: LogIn, db: None
) -> None:
    JobType.objects.update(summary=None)
    JobType.objects.filter(name=ADD).update(summary="order {order.id} with {token}")
    JobType.objects.filter(name=FAIL).update(summary="order {order.id}")
    text = everywhere(anna, "4711").text
    assert "data.order.id:4711 0 0 data.token:4711 0 0" in text
    text = everywhere(log_in(*DATA), "4711").text  # who may not see secrets
    assert "data.order.id:4711 0 0" in text
    assert "data.token" not in text
    blind = log_in(*VIEWS, name="blind")
    assert "data.order" not in everywhere(anna, "declined").text
    assert "data.order" not in everywhere(blind, "4711").text


def test_anything_can_be_asked(anna: Client, scene: Scene) -> None:
    odd = ("", " ", "<script>", 'data."', "x" * 5_000, "\x00", "type:", "a b c")
    for text in odd:
        page = everywhere(anna, text)
        assert "<script>alert" not in page.html
        assert page.all("input", type="search")
