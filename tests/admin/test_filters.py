"""Filters: by state, type, queue, group and time; and the search by id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client, modify_settings
from django.utils import timezone

from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.search.ids import id_search
from tests.admin import scene as rows
from tests.admin.pages import get, list_of, page_of
from tests.admin.scene import ADD, FAIL, LEAK, ONCE, Scene

DAY = timedelta(days=1)


def shown(client: Client, scene: Scene, model: str, **query: str) -> set[str]:
    """Which jobs of the scene are in the list."""
    found = get(client, list_of(model), **query).rows
    jobs = scene.queued if model == "queuedjob" else scene.archived
    return {name for name, id in jobs.items() if str(id) in found}


@pytest.mark.parametrize(
    ("state", "names"),
    [
        ("ready", {"ready", "expiring", "paused"}),
        ("later", {"later", "retrying"}),
        ("retrying", {"retrying"}),
        ("running", {"running", "lapsed", "unclaimed"}),
        ("cancelling", {"cancelling"}),
        ("succeeded", set()),
        ("x", set()),
    ],
)
def test_queued_jobs_by_state(
    anna: Client, scene: Scene, state: str, names: set[str]
) -> None:
    assert shown(anna, scene, "queuedjob", state=state) == names


@pytest.mark.parametrize(
    ("status", "names"),
    [
        ("succeeded", {"succeeded"}),
        ("failed", {"failed", "once", "secret", "gone"}),
        ("expired", {"expired"}),
        ("cancelled", {"cancelled"}),
        ("queued", set()),
        ("x", set()),
    ],
)
def test_archived_jobs_by_status(
    anna: Client, scene: Scene, status: str, names: set[str]
) -> None:
    assert shown(anna, scene, "archivedjob", status=status) == names


def test_jobs_by_type(anna: Client, scene: Scene) -> None:
    assert shown(anna, scene, "archivedjob", job_type=ONCE) == {"once"}
    assert shown(anna, scene, "archivedjob", job_type="shop.removed") == {"gone"}
    assert shown(anna, scene, "archivedjob", job_type="x") == set()
    assert shown(anna, scene, "queuedjob", job_type=FAIL) == {"retrying"}
    both = {"job_type": LEAK, "status": "failed"}
    assert shown(anna, scene, "archivedjob", **both) == {"secret"}


def test_jobs_by_queue(anna: Client, scene: Scene) -> None:
    QueuedJob.objects.filter(pk=scene.queued["later"]).update(queue="of a job only")
    assert shown(anna, scene, "queuedjob", queue="of a job only") == {"later"}
    page = get(anna, list_of("queuedjob"))
    offered = {
        value[0]
        for link in page.links
        if (value := parse_qs(urlsplit(link).query).get("queue"))
    }
    assert {"of a job only", "default", "mail", "images"} <= offered


def test_jobs_of_a_failure_group(anna: Client, scene: Scene) -> None:
    names = {"failed", "once", "secret", "gone"}
    group = str(scene.group)
    assert shown(anna, scene, "archivedjob", fingerprint=group) == names
    assert shown(anna, scene, "archivedjob", fingerprint="x") == set()
    page = get(anna, list_of("archivedjob"), fingerprint=group)
    assert "By failure group" in page.text
    assert "By failure group" not in get(anna, list_of("archivedjob")).text


def test_failure_groups_by_state(anna: Client, scene: Scene) -> None:
    address = page_of("failuregroup", scene.group)

    def listed(state: str) -> bool:
        links = get(anna, list_of("failuregroup"), state=state).links
        return any(link.startswith(address) for link in links)

    assert listed("open")
    assert not listed("resolved")


def test_filters_keep_each_other(anna: Client, scene: Scene) -> None:
    query = {
        "status": "failed",
        "job_type": FAIL,
        "finished_at__range__gte_0": "2001-01-01",
    }
    page = get(anna, list_of("archivedjob"), **query)
    link = next(link for link in page.links if "status=cancelled" in link)
    assert parse_qs(urlsplit(link).query) == {
        "status": ["cancelled"],
        "job_type": [FAIL],
        "finished_at__range__gte_0": ["2001-01-01"],
    }
    hidden = {(i["name"], i["value"]) for i in page.all("input", type="hidden")}
    assert {("status", "failed"), ("job_type", FAIL)} <= hidden


@pytest.fixture
def days(db: None) -> dict[str, str]:
    """Archived jobs at known moments."""
    moments = {
        "before": datetime(2026, 3, 1, 23, 59, 59, 999_999, tzinfo=UTC),
        "start": datetime(2026, 3, 2, tzinfo=UTC),
        "noon": datetime(2026, 3, 2, 12, 0, 0, 500_000, tzinfo=UTC),
        "end": datetime(2026, 3, 2, 23, 59, 59, 999_999, tzinfo=UTC),
        "after": datetime(2026, 3, 3, tzinfo=UTC),
    }
    return {str(rows.archived(finished_at=at)): name for name, at in moments.items()}


@pytest.mark.parametrize(
    ("start", "end", "names"),
    [
        (("2026-03-02", ""), ("2026-03-02", ""), "start noon end"),
        (("2026-03-02", ""), ("", ""), "start noon end after"),
        (("", ""), ("2026-03-01", ""), "before"),
        (("2026-03-02", "12:00"), ("2026-03-02", "12:00:00"), "noon"),
        (("2026-03-02", "12:00:01"), ("2026-03-03", "00:00"), "end after"),
        (("", ""), ("", ""), "before start noon end after"),
        (("2026-03-04", ""), ("", ""), ""),
    ],
)
def test_a_range_takes_both_ends_and_completes_what_is_half(
    anna: Client,
    days: dict[str, str],
    start: tuple[str, str],
    end: tuple[str, str],
    names: str,
) -> None:
    values = dict(
        zip(("gte_0", "gte_1", "lte_0", "lte_1"), [*start, *end], strict=True)
    )
    query = {f"finished_at__range__{name}": value for name, value in values.items()}
    found = get(anna, list_of("archivedjob"), **query).rows
    assert [days[id] for id in reversed(found)] == names.split()


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"gte_1": "12:00"}, "A time needs a date."),
        ({"gte_0": "soon"}, "“soon” is not a date."),
        ({"gte_0": "2026-02-30"}, "“2026-02-30” is not a date."),
        ({"lte_0": "2026-03-02", "lte_1": "25:00"}, "“25:00” is not a time."),
        ({"gte_0": "2026-03-03", "lte_0": "2026-03-02"}, "It ends before it begins."),
    ],
)
def test_a_range_that_is_not_clear_shows_nothing_and_says_why(
    anna: Client, days: dict[str, str], query: dict[str, str], why: str
) -> None:
    named = {f"finished_at__range__{name}": value for name, value in query.items()}
    page = get(anna, list_of("archivedjob"), **named)
    assert page.rows == []
    assert f"is not clear: {why}" in page.text


@modify_settings(INSTALLED_APPS={"remove": "rangefilter"})
def test_ranges_need_no_other_app(anna: Client, days: dict[str, str]) -> None:
    query = {"finished_at__range__gte_0": "2026-03-03"}
    found = get(anna, list_of("archivedjob"), **query).rows
    assert [days[id] for id in found] == ["after"]


def test_ready_made_ranges_find_what_they_say(anna: Client, db: None) -> None:
    now = timezone.now()
    old = rows.archived(finished_at=now - 2 * DAY)
    new = rows.archived(finished_at=now)
    page = get(anna, list_of("archivedjob"))
    ranges = [link for link in page.links if "finished_at__range__gte_0" in link]
    found = [get(anna, list_of("archivedjob") + link).rows for link in ranges]
    both = [str(new), str(old)]
    assert found == [[str(new)], [str(new)], [str(new)], both, [str(new)], []]


def test_ready_made_ranges_of_queued_jobs(anna: Client, scene: Scene) -> None:
    now = timezone.now()
    QueuedJob.objects.filter(run_after__lt=now).update(run_after=now - DAY)
    page = get(anna, list_of("queuedjob"))
    links = [link for link in page.links if "run_after__range" in link]
    found = [
        {n for n, id in scene.queued.items() if str(id) in found_rows}
        for link in links
        if (found_rows := get(anna, list_of("queuedjob") + link).rows) is not None
    ]
    waiting = {"later", "retrying"}
    assert found == [scene.queued.keys() - waiting, waiting, waiting, set()]


def test_a_job_is_found_by_its_id_as_a_whole_in_short_or_in_part(
    anna: Client, scene: Scene
) -> None:
    id = str(scene.archived["failed"])
    for text in (id, id.upper(), f" {id} ", id.replace("-", ""), f"job_{id}"):
        assert get(anna, list_of("archivedjob"), q=text).rows == [id]
    short = f"{id[:8]}…{id[-6:]}"
    assert short in get(anna, list_of("archivedjob")).text
    assert get(anna, list_of("archivedjob"), q=short).rows == [id]
    assert id in get(anna, list_of("archivedjob"), q=id[:13]).rows


def test_the_beginning_of_many_ids_finds_a_page_of_them(anna: Client, db: None) -> None:
    ids = [rows.uuid4() for _ in range(60)]
    ArchivedJob.objects.bulk_create(
        ArchivedJob(id=f"abcdef00-{str(id)[9:]}", job_type_id=ADD, status="succeeded")
        for id in ids
    )
    page = get(anna, list_of("archivedjob"), q="abcdef")
    assert len(page.rows) == 50
    assert "More jobs begin so. Give more of the id." in page.text


def test_an_id_that_is_elsewhere_is_linked(anna: Client, scene: Scene) -> None:
    page = get(anna, list_of("archivedjob"), q=str(scene.queued["later"]))
    assert page_of("queuedjob", scene.queued["later"]) in page.links
    page = get(anna, list_of("queuedjob"), q=str(scene.archived["failed"]))
    assert page_of("archivedjob", scene.archived["failed"]) in page.links


@pytest.mark.parametrize(
    "text", ["id:order", "id:abc", "id:zzzzzzzz", "id:…", "id:…abc123"]
)
def test_what_is_no_id_finds_nothing_and_says_what_can_be_searched(
    anna: Client, scene: Scene, text: str
) -> None:
    page = get(anna, list_of("archivedjob"), q=text)
    assert page.rows == []
    assert "Jobs are searched by id: a whole one, or at least its first 6" in page.text


def test_a_search_is_a_range_of_ids() -> None:
    search = id_search("01a1fefc-a7")
    assert search is not None
    assert str(search.first) == "01a1fefc-a700-0000-0000-000000000000"
    assert str(search.last) == "01a1fefc-a7ff-ffff-ffff-ffffffffffff"
    assert not search.is_exact


def test_filters_apply_to_a_search_too(anna: Client, scene: Scene) -> None:
    id = str(scene.archived["failed"])
    assert get(anna, list_of("archivedjob"), q=id, status="failed").rows == [id]
    assert get(anna, list_of("archivedjob"), q=id, status="expired").rows == []
