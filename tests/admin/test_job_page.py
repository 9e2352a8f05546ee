"""The page of one job: attempts, timeline, what is related, data as they are."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_jobqueue.models import ArchivedJob, Failure, JobType, QueuedJob
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.pages import Page, get, list_of, page_of
from tests.admin.scene import ADD, FAIL, LEAK, MINUTE, SECRET, Scene


def view_of(model: str, id: object, view: str) -> str:
    """The address of a page below that of a job."""
    return reverse(f"admin:jobqueue_{model}_{view}", args=[str(id)])


def failures(id: UUID, count: int, **columns: Any) -> list[Failure]:
    """Attempts of this job that failed, a minute each."""
    begun = timezone.now() - timedelta(hours=2)
    made = []
    for number in range(1, count + 1):
        defaults = {
            "job_type": FAIL,
            "number": number,
            "end": "failed",
            "started_at": begun + number * MINUTE,
            "finished_at": begun + number * MINUTE + timedelta(seconds=10),
            "error_class": "ValueError",
            "error_message": f"no luck at {number}",
        }
        made.append(Failure.objects.create(job_id=id, **{**defaults, **columns}))
    return made


def set_data(id: UUID, text: str) -> None:
    """Write data as plain SQL does."""
    for table in ("jobqueue_queuedjob", "jobqueue_archivedjob"):
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {table} SET data = %s::jsonb WHERE id = %s", [text, id]
            )


def test_the_latest_twenty_and_the_first_are_on_the_page(
    anna: Client, db: None
) -> None:
    id = rows.archived(FAIL, "failed")
    made = failures(id, 45)
    page = get(anna, page_of("archivedjob", id))
    assert len(page.all("article")) == 21
    assert "no luck at 45" in page.text
    assert "no luck at 26" in page.text
    assert "no luck at 25" not in page.text
    assert "no luck at 1 " in page.text
    assert f"?attempts={made[25].pk}#jq-attempts" in page.links


def test_older_attempts_are_pages_of_their_own(anna: Client, db: None) -> None:
    id = rows.archived(FAIL, "failed")
    made = failures(id, 45)
    page = get(anna, page_of("archivedjob", id), attempts=made[25].pk)
    assert "no luck at 25" in page.text
    assert "no luck at 6 " in page.text
    assert "no luck at 26" not in page.text
    assert "?#jq-attempts" in page.links
    page = get(anna, page_of("archivedjob", id), attempts=made[5].pk)
    assert [n for n in range(1, 6) if f"no luck at {n} " in page.text] == [*range(1, 6)]
    assert "Older attempts" not in page.text


@pytest.mark.parametrize("before", ["x", "-1", "9" * 40, "1;", "²", "\x00"])
def test_a_place_among_the_attempts_that_is_none_shows_the_newest(
    anna: Client, db: None, before: str
) -> None:
    id = rows.archived(FAIL, "failed")
    failures(id, 3)
    assert "no luck at 3" in get(anna, page_of("archivedjob", id), attempts=before).text


def test_attempts_in_a_row_that_failed_alike_are_one(anna: Client, db: None) -> None:
    id = rows.queued(FAIL, attempts=5)
    same, other = uuid4(), uuid4()
    failures(id, 4, fingerprint=same)
    failures(id, 1, number=5, fingerprint=other, error_message="another")
    page = get(anna, page_of("queuedjob", id))
    assert len(page.all("article")) == 2
    assert "1–4" in page.text
    assert "the same error, 4 times" in page.text
    assert "no luck at 4" in page.text
    assert "attempts 1–4" in page.text  # on the timeline


def test_the_timeline_tells_the_wait_between_attempts(anna: Client, db: None) -> None:
    id = rows.queued(FAIL, attempts=2)
    QueuedJob.objects.update(created_at=timezone.now() - timedelta(hours=3))
    failures(id, 2)
    text = get(anna, page_of("queuedjob", id)).text
    assert "50.0 s after the one before" in text
    places = [text.index(word) for word in ("created", "attempt 1", "attempt 2", "due")]
    assert places == sorted(places)


def test_a_traceback_shows_whose_frames_they_are(anna: Client, db: None) -> None:
    id = rows.archived(FAIL, "failed")
    text = (
        "Traceback (most recent call last):\n"
        '  File "/srv/shop/jobs.py", line 7, in sell\n'
        "    order.sell()\n"
        '  File "/lib/site-packages/x.py", line 9, in sell\n'
        "    raise ValueError\n"
        "ValueError: no luck"
    )
    frames = [
        {"file": "/srv/shop/jobs.py", "line": 7, "function": "sell", "project": True},
        {
            "file": "/lib/site-packages/x.py",
            "line": 9,
            "function": "sell",
            "project": False,
        },
    ]
    failures(id, 1, traceback=text, frames=frames)
    page = get(anna, page_of("archivedjob", id))
    kinds = [
        str(li["class"]) for li in page.all("li") if "frame" in str(li.get("class"))
    ]
    assert kinds == ["jq-frame-project", "jq-frame-library"]


@pytest.mark.parametrize("frames", [{"a": 1}, 7, "x", [1, None, {"file": []}]])
def test_frames_that_plain_sql_wrote_harm_nothing(
    anna: Client, db: None, frames: Any
) -> None:
    id = rows.archived(FAIL, "failed")
    failures(id, 1, traceback="Traceback\n  ValueError", frames=frames)
    assert "ValueError" in get(anna, page_of("archivedjob", id)).text


def test_long_tracebacks_are_bounded(anna: Client, db: None) -> None:
    id = rows.archived(FAIL, "failed")
    failures(id, 20, traceback="x\n" * 100_000, log_tail="y" * 500_000)
    page = get(anna, page_of("archivedjob", id))
    assert len(page.html) < 1_500_000
    assert "Only the beginning of the traceback is shown." in page.text
    assert "The traceback is not shown, because others fill the page." in page.text


def test_numbers_are_shown_with_all_their_digits(anna: Client, db: None) -> None:
    id = rows.queued()
    text = (
        '{"id": 9007199254740993, "price": 1.10, "long": 0.12345678901234567890123,'
        f' "many": {"7" * 5_000}}}'
    )
    set_data(id, text)
    page = get(anna, page_of("queuedjob", id))
    for shown in (
        '"id": 9007199254740993',
        '"price": 1.10',
        '"long": 0.12345678901234567890123',
        "7" * 2_000,
    ):
        assert shown in page.text


def test_keys_keep_their_order_and_deep_levels_fold(anna: Client, db: None) -> None:
    deep = {"one": {"two": {"three": {"four": [1, 2]}}}}
    id = rows.queued(data=deep)
    page = get(anna, page_of("queuedjob", id))
    assert len(page.all("details")) == 2
    assert '"three": { 1 key' in page.text
    assert '"four": [ 2 items' in page.text


def test_long_texts_fold_their_rest(anna: Client, db: None) -> None:
    id = rows.queued(data={"note": "x" * 5_000})
    page = get(anna, page_of("queuedjob", id))
    assert "… and 3,002 more characters" in page.text
    assert "x" * 1_999 in page.text


@pytest.mark.parametrize(
    "data",
    [
        {"note": "é" * 1_000_000},
        {"list": [*range(200_000)]},
        {"list": [[[[{}, {"a": 1}]]]] * 30_000},
        {"<b>" * 300_000: ["<b>" * 300_000]},
    ],
)
def test_data_of_a_megabyte_is_cut_and_can_be_downloaded(
    anna: Client, db: None, data: Any
) -> None:
    id = rows.queued(data=data)
    page = get(anna, page_of("queuedjob", id))
    assert len(page.html) < 1_000_000
    assert "Only the first 65,536 characters are shown." in page.text
    response = anna.get(view_of("queuedjob", id, "download"))
    assert json.loads(response.content) == data


def test_data_that_are_too_large_to_be_read_are_not(anna: Client, db: None) -> None:
    id = rows.queued(data={"note": "x" * 5_000_000})
    page = get(anna, page_of("queuedjob", id))
    assert "xxx" not in page.text
    assert "Download as text" in page.text


def test_data_nested_too_deeply_harm_nothing(anna: Client, db: None) -> None:
    id = rows.queued()
    set_data(id, '{"a":' * 3_000 + "1" + "}" * 3_000)
    for address in (
        page_of("queuedjob", id),
        view_of("queuedjob", id, "download"),
    ):
        assert anna.get(address).status_code == 200


def test_a_download_is_a_file_and_masked(anna: Client, db: None) -> None:
    id = rows.archived(LEAK, data={"token": SECRET, "n": 1}, result={"password": "p"})
    set_data(id, f'{{"token": "{SECRET}", "n": 1.00}}')
    response = anna.get(view_of("archivedjob", id, "download"), {"of": "data"})
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Content-Disposition"].startswith("attachment;")
    assert response.content.decode() == '{\n  "n": 1.00,\n  "token": "••••"\n}\n'
    response = anna.get(view_of("archivedjob", id, "download"), {"of": "result"})
    assert response.content.decode() == '{\n  "password": "••••"\n}\n'


def test_who_may_not_see_data_may_not_download_it(log_in: LogIn, db: None) -> None:
    id = rows.queued(data={"order": 4711})
    client = log_in("view_queuedjob", "reveal_job_data")
    assert client.get(view_of("queuedjob", id, "download")).status_code == 403
    page = get(client, page_of("queuedjob", id))
    assert view_of("queuedjob", id, "download") not in page.html
    assert view_of("queuedjob", id, "reveal") not in page.html


def test_secrets_are_revealed_once_and_written_down(
    log_in: LogIn, scene: Scene, operated: list[dict[str, Any]]
) -> None:
    id = scene.archived["secret"]
    client = log_in("view_archivedjob", "view_job_data", "reveal_job_data")
    page = get(client, page_of("archivedjob", id))
    assert SECRET not in page.html
    assert view_of("archivedjob", id, "reveal") in page.html
    response = client.post(view_of("archivedjob", id, "reveal"))
    assert SECRET in response.content.decode()
    assert "no-store" in response.headers["Cache-Control"]
    (entry,) = LogEntry.objects.all()
    assert (entry.object_id, entry.user.get_username()) == (str(id), "bert")
    assert [(told["verb"], told["by"]) for told in operated] == [("reveal", "bert")]
    again = get(client, page_of("archivedjob", id))
    assert SECRET not in again.html
    assert "Saw the secrets" in again.text


def test_secrets_are_not_revealed_by_get_nor_without_the_right(
    anna: Client, log_in: LogIn, scene: Scene
) -> None:
    address = view_of("archivedjob", scene.archived["secret"], "reveal")
    assert anna.get(address).status_code == 405
    for rights in (("view_job_data",), ("reveal_job_data",)):
        client = log_in("view_archivedjob", *rights, name=rights[0])
        assert client.post(address).status_code == 403
    assert not LogEntry.objects.exists()


def test_the_last_jobs_of_the_type_are_marks(anna: Client, db: None) -> None:
    for _ in range(70):
        rows.archived(FAIL, "failed", run_ms=1_500)
    rows.archived(ADD)
    id = ArchivedJob.objects.filter(job_type_id=FAIL).order_by("-finished_at")[0].pk
    page = get(anna, page_of("archivedjob", id))
    marks = [attrs for attrs in page.all("a") if "jq-failed" in str(attrs.get("class"))]
    assert len(marks) == 59
    assert str(marks[0]["title"]).startswith("failed, ran 1.5 s, ")
    assert "this job" in page.text


def test_the_marks_lead_nowhere_for_who_may_not_see_the_archive(
    log_in: LogIn, scene: Scene
) -> None:
    page = get(log_in("view_queuedjob"), page_of("queuedjob", scene.queued["ready"]))
    assert "The last jobs of this type" in page.text
    assert not [link for link in page.links if "archivedjob" in link]


def test_a_replay_of_a_replay_leads_to_both(anna: Client, scene: Scene) -> None:
    first = scene.archived["failed"]
    second = rows.archived(FAIL, "failed", replay_of=first, root_id=first)
    third = rows.queued(FAIL, replay_of=second, root_id=first)
    page: Page = get(anna, page_of("queuedjob", third))
    assert {page_of("archivedjob", id) for id in (first, second)} <= {*page.links}
    assert "the first of the line" in page.text


def test_what_changes_is_marked_for_scripts(anna: Client, scene: Scene) -> None:
    """What is over changes no more."""
    live = {"data-jq-region": "job"}
    page = get(anna, page_of("queuedjob", scene.queued["running"]))
    assert page.all("div", **live)
    page = get(anna, page_of("archivedjob", scene.archived["failed"]))
    assert not page.all("div", **live)


@pytest.mark.parametrize(
    ("known", "shown"), [(3, "3 / 3"), (12_345, "3 / 12,345"), (None, "3")]
)
@pytest.mark.parametrize("where", ["page", "list"])
def test_an_archived_job_shows_the_limit_that_applied(
    anna: Client, db: None, known: int | None, shown: str, where: str
) -> None:
    """Not the one that its type has by now."""
    id = rows.archived(FAIL, "failed", attempts=3, effective_max_attempts=known)
    JobType.objects.filter(pk=FAIL).update(max_attempts_override=9)
    address = list_of("archivedjob") if where == "list" else page_of("archivedjob", id)
    page = get(anna, address)
    assert "3 / 9" not in page.text
    assert f'<bdi class="jq-short">{shown}</bdi>' in page.html


@pytest.mark.parametrize("view", ["change", "edit_data", "download"])
def test_a_job_that_moves_while_its_page_is_made_is_followed(
    anna: Client, db: None, view: str
) -> None:
    id = rows.queued(ADD, data={"a": 1, "b": 2})

    def move_before_data_are_read(
        execute: Any, sql: str, params: Any, *more: Any
    ) -> Any:
        if '"data")::text' in sql and '"jobqueue_queuedjob"' in sql:
            QueuedJob.objects.filter(pk=id).delete()
            rows.archived(ADD, id=id, data={"a": 1, "b": 2})
        return execute(sql, params, *more)

    with connection.execute_wrapper(move_before_data_are_read):
        response = anna.get(view_of("queuedjob", id, view))
    assert not QueuedJob.objects.filter(pk=id).exists()
    assert response.status_code == 302
    assert response["Location"] == page_of("archivedjob", id)
