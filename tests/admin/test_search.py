"""The search box of the lists: terms, ids, and who may search in what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_jobqueue.models import ArchivedJob, QueuedJob
from tests.admin import scene as rows
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.pages import Page, get, list_of, page_of
from tests.admin.scene import ADD, FAIL, LEAK, ONCE, SECRET, Scene

# Rows of a list can be told apart where they can be selected.
READER = (*VIEWS, "replay_archivedjob")
INDEX = """
CREATE INDEX shop_job_data ON jobqueue_archivedjob USING gin (data jsonb_path_ops)
"""


def search(client: Client, text: str, model: str = "archivedjob") -> Page:
    """The list with this in its search box."""
    return get(client, list_of(model), q=text)


@pytest.fixture
def jobs(scene: Scene) -> dict[str, str]:
    """The scene, with something to search for; names by id."""
    ArchivedJob.objects.filter(pk=scene.archived["failed"]).update(
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
        finished_at=timezone.now() - timedelta(days=3), queue="images"
    )
    QueuedJob.objects.filter(pk=scene.queued["later"]).update(
        replay_of=scene.archived["failed"], tags=["vip"]
    )
    found = {**scene.queued, **{f"a-{k}": id for k, id in scene.archived.items()}}
    return {str(id): name for name, id in found.items()}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"type:{ONCE}", "once"),
        ("type:write_once", "once"),
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
        ("attempts:>3", "failed"),
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
        ("luck", "failed gone once secret"),
        ("NO LUCK status:failed type:write_once", "once"),
        ('"no luck" fail', "failed"),
        ('"luck no"', ""),
        ("not wanted", "cancelled"),
        ("valueerror", "failed gone once secret"),
        ("write_once", "once"),
        ("tests.sample.fail", "failed"),
        ("removed", "gone"),
        ("no_such_word", ""),
        ("%", ""),
        ("type:rite_onc", "once"),
    ],
)
def test_archived_jobs(
    anna: Client, jobs: dict[str, str], text: str, names: str
) -> None:
    page = search(anna, text)
    assert sorted(jobs[id].removeprefix("a-") for id in page.rows) == names.split()
    assert "Nothing matches." in page.text or names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("state:ready", "expiring paused ready"),
        ("status:retrying", "retrying"),
        ("state:lapsed", "lapsed unclaimed"),
        ("worker:web-1:1", "cancelling running"),
        ("error:ValueError", "retrying"),
        ("tag:vip", "later"),
        ("due:>now type:tests.sample.fail", "retrying"),
        ("data.a:1", "ready"),
        ("luck", "retrying"),
        ("ValueError", "retrying"),
        ("leak", "paused"),
        (f"{FAIL} luck", "retrying"),
    ],
)
def test_queued_jobs(anna: Client, jobs: dict[str, str], text: str, names: str) -> None:
    found = search(anna, text, "queuedjob").rows
    assert sorted(jobs[id] for id in found) == names.split()


TAGS = ["vip", "two words", 'a "quoted" one', "back\\slash", "<b>bold</b>", "ünïcode"]


@pytest.mark.parametrize("model", ["archivedjob", "queuedjob"])
@pytest.mark.parametrize("tag", TAGS)
def test_a_tag_is_shown_and_leads_to_the_jobs_that_have_it(
    anna: Client, db: None, model: str, tag: str
) -> None:
    make = rows.archived if model == "archivedjob" else rows.queued
    job, _other = make(tags=[tag, "other"]), make(tags=["other"])
    assert tag in get(anna, list_of(model)).text
    page = get(anna, page_of(model, job))
    links = [one["href"] for one in page.all("a", **{"class": "jq-tag"})]
    assert len(links) == 2
    assert tag in page.text
    assert get(anna, str(links[0])).rows == [str(job)]
    assert len(get(anna, str(links[1])).rows) == 2


def test_many_tags_are_cut_in_a_list_and_whole_on_the_page(
    anna: Client, db: None
) -> None:
    job = rows.archived(tags=[f"tag-{n}" for n in range(9)])
    text = get(anna, list_of("archivedjob")).text
    assert "tag-0 tag-1 tag-2 +6" in text
    assert "tag-3" not in text
    assert "tag-8" in get(anna, page_of("archivedjob", job)).text


@pytest.mark.parametrize("tags", [None, [], {"a": 1}, "text", 7, [7, None]])
def test_what_is_no_tag_is_not_shown(anna: Client, db: None, tags: object) -> None:
    job = rows.archived(tags=tags)
    for address in (list_of("archivedjob"), page_of("archivedjob", job)):
        assert "jq-tag" not in get(anna, address).html


def test_replays_of_a_job(anna: Client, scene: Scene, jobs: dict[str, str]) -> None:
    text = f"replay-of:{scene.archived['failed']}"
    assert search(anna, text, "queuedjob").rows == [str(scene.queued["later"])]


def test_several_ids(anna: Client, scene: Scene) -> None:
    ids = {str(scene.archived["failed"]), str(scene.archived["once"])}
    assert set(search(anna, " ".join(ids)).rows) == ids
    assert set(search(anna, " ".join(ids) + " type:tests.sample.fail").rows) < ids


@pytest.mark.parametrize(
    "text", ["tpye:x", "id:order 7", 'type:"', "ran:>soon", "type:"]
)
def test_what_is_not_understood_reads_no_job(
    anna: Client, scene: Scene, text: str
) -> None:
    with CaptureQueriesContext(connection) as captured:
        page = search(anna, text)
    assert page.rows == []
    assert page.all("li", **{"class": "error"})
    read = [q["sql"] for q in captured if 'FROM "jobqueue_archivedjob"' in q["sql"]]
    assert read == []


def test_a_short_type_that_is_not_clear_is_told(anna: Client, scene: Scene) -> None:
    rows.JobType.objects.create(name="other.add")
    page = search(anna, "type:add")
    assert page.rows == []
    text = "More than one job type has “add” in its name: other.add, "
    assert text in page.text
    assert f", {ADD}" in page.text


def test_data_are_searched_by_those_who_may_view_them(
    log_in: LogIn, jobs: dict[str, str]
) -> None:
    page = search(log_in(*READER), "data.order.id:7")
    assert page.rows == []
    assert "You may not view the data of jobs" in page.text
    reader = log_in(*READER, "view_job_data", name="rita")
    assert len(search(reader, "data.order.id:7").rows) == 1


@pytest.mark.parametrize(
    "text",
    [
        f'data.token:"{SECRET}"',
        f'data.user.Token.x:"{SECRET}"',
        f'type:{LEAK} data.token:"{SECRET}"',
        "data.api_key:7",
        "data.password.x:7",
        f"type:{LEAK} data.PIN:7",
        "data.pin:7",
    ],
)
def test_secrets_cannot_be_guessed(log_in: LogIn, scene: Scene, text: str) -> None:
    rows.JobType.objects.filter(name=LEAK).update(sensitive=["token", "Pin"])
    reader = log_in(*READER, "view_job_data")
    page = search(reader, text)
    assert page.rows == []
    assert "is a sensitive key: you may not view its values" in page.text
    page = get(reader, list_of("archivedjob"), q="data.pin:7", job_type=LEAK)
    assert "is a sensitive key" in page.text


def test_keys_that_are_sensitive_elsewhere_are_searched(
    log_in: LogIn, scene: Scene
) -> None:
    rows.JobType.objects.filter(name=LEAK).update(sensitive=["pin"])
    found = str(rows.archived(FAIL, data={"pin": 7}))
    reader = log_in(*READER, "view_job_data")
    assert search(reader, f"type:{FAIL} data.pin:7").rows == [found]
    page = get(reader, list_of("archivedjob"), q="data.pin:7", job_type=FAIL)
    assert page.rows == [found]


def test_who_may_reveal_secrets_finds_them(log_in: LogIn, scene: Scene) -> None:
    client = log_in(*READER, "view_job_data", "reveal_job_data")
    found = search(client, f'data.token:"{SECRET}"').rows
    assert found == [str(scene.archived["secret"])]


@pytest.fixture
def index(db: None) -> None:
    """The index that a project may make."""
    with connection.cursor() as cursor:
        cursor.execute(INDEX)


@pytest.fixture
def many(db: None) -> list[str]:
    """More jobs than the window has, the oldest of which is searched for."""
    now = timezone.now()
    oldest = rows.archived(finished_at=now - timedelta(days=9), data={"order": 7})
    for number in range(30):
        rows.archived(data={"order": number + 100})
    return [str(oldest)]


def test_data_without_an_index_are_searched_in_a_window(
    anna: Client, many: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "django_jobqueue.admin.lists.change_list.JobChangeList.window", 20
    )
    page = search(anna, "data.order:7")
    assert page.rows == []
    assert "Searched the newest 20 jobs only" in page.text
    older = next(link for link in page.links if "since=" in link)
    assert get(anna, list_of("archivedjob") + older).rows == many


def test_data_with_an_index_are_searched_everywhere(
    anna: Client, index: None, many: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "django_jobqueue.admin.lists.change_list.JobChangeList.window", 20
    )
    page = search(anna, "data.order:7")
    assert page.rows == many
    assert "Searched the newest" not in page.text
    assert "Searched the newest" in search(anna, "tag:x").text


def test_jobs_that_ran_at_a_time_are_found_by_start_and_end(
    anna: Client, db: None
) -> None:
    two = datetime(2026, 3, 3, 2, tzinfo=UTC)
    minute = timedelta(minutes=1)

    def ran(start: int, end: int) -> str:
        started, finished = two + start * minute, two + end * minute
        return str(rows.archived(started_at=started, finished_at=finished))

    ran(-9, -5), ran(11, 12)
    during = {ran(-5, 3), ran(4, 6), ran(8, 20), ran(-30, 60)}
    query = "finished:>=2026-03-03T02:00 started:<=2026-03-03T02:10"
    page = get(anna, list_of("archivedjob"), q=query)
    assert set(page.rows) == during
    running = rows.queued(status="running", started_at=two)
    waiting = rows.queued()
    found = get(anna, list_of("queuedjob"), q="started:2026-03-03").rows
    assert found == [str(running)]
    assert str(waiting) not in found
