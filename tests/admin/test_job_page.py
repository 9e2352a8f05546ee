"""The page of one job: attempts, timeline, what is related, data as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise, product
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.admin.jobs.job_attempts import Attempt, Attempts, Run
from django_jobqueue.admin.jobs.timeline import Step, timeline
from django_jobqueue.admin.parts import json_tree
from django_jobqueue.admin.parts.json_text import parsed
from django_jobqueue.models import ArchivedJob, Failure, JobType, QueuedJob
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.pages import get, list_of, page_of
from tests.admin.scene import ADD, FAIL, LEAK, MINUTE, SECRET, archived, insert_all
from tests.admin.units import context
from tests.sample import jobs
from tests.support.hand_driven import HandDriven

pytestmark = pytest.mark.django_db


def view_of(model: str, id: object, view: str) -> str:
    return reverse(f"admin:jobqueue_{model}_{view}", args=[str(id)])


def failures(id: UUID, count: int, **columns: Any) -> list[int]:
    """Attempts of this job that failed, a minute each: their keys."""
    begun = timezone.now() - timedelta(hours=2)
    same = {
        "job_id": id,
        "job_type": FAIL,
        "end": "failed",
        "error_class": "ValueError",
    }
    made = []
    for number in range(1, count + 1):
        at = begun + number * MINUTE
        moments = {"started_at": at, "finished_at": at + timedelta(seconds=10)}
        own = {"number": number, "error_message": f"no luck at {number}"}
        made.append({**same, **own, **moments, **columns})
    return insert_all(Failure, made)


def set_data(id: UUID, text: str) -> None:
    """Write data as plain SQL does."""
    for table in ("jobqueue_queuedjob", "jobqueue_archivedjob"):
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {table} SET data = %s::jsonb WHERE id = %s", [text, id]
            )


def page(client: Client, model: str, id: UUID, **query: Any) -> Any:
    return context(client, model, id, **query)["page"]


# Attempts.


def test_the_latest_twenty_attempts_and_the_first_are_on_the_page(anna: Client) -> None:
    id = rows.archived(FAIL, "failed")
    made = failures(id, 45)
    address = page_of("archivedjob", id)
    found = get(anna, address)
    assert len(found.all("article")) == 21
    for number, there in ((45, True), (26, True), (25, False), (1, True)):
        assert (f"no luck at {number} " in found.text) is there, number
    assert f"?attempts={made[25]}#jq-attempts" in found.links
    # Older ones are pages of their own.
    found = get(anna, address, attempts=made[25])
    for number, there in ((25, True), (6, True), (26, False)):
        assert (f"no luck at {number} " in found.text) is there, number
    assert "?#jq-attempts" in found.links
    found = get(anna, address, attempts=made[5])
    last = [n for n in range(1, 7) if f"no luck at {n} " in found.text]
    assert last == [1, 2, 3, 4, 5]
    assert "Older attempts" not in found.text
    # A place that is none shows the newest.
    for before in ("x", "-1", "9" * 40, "1;", "²", "\x00"):
        attempts = page(anna, "archivedjob", id, attempts=before).attempts
        assert (attempts.is_newest, attempts.newest.number) == (True, 45), before


def test_attempts_in_a_row_that_failed_alike_are_one_and_have_a_timeline(
    anna: Client,
) -> None:
    id = rows.queued(FAIL, attempts=5)
    QueuedJob.objects.update(created_at=timezone.now() - timedelta(hours=3))
    same, other = uuid4(), uuid4()
    failures(id, 4, fingerprint=same)
    failures(id, 1, number=5, fingerprint=other, error_message="another")
    found = get(anna, page_of("queuedjob", id))
    assert len(found.all("article")) == 2
    for text in ("1–4", "the same error, 4 times", "no luck at 4"):
        assert text in found.text
    assert "attempts 1–4" in found.text  # on the timeline
    id = rows.queued(FAIL, attempts=2)
    QueuedJob.objects.update(created_at=timezone.now() - timedelta(hours=3))
    failures(id, 2)
    text = get(anna, page_of("queuedjob", id)).text
    assert "50.0 s after the one before" in text
    places = [text.index(word) for word in ("created", "attempt 1", "attempt 2", "due")]
    assert places == sorted(places)


def test_a_traceback_shows_whose_frames_they_are(anna: Client) -> None:
    id = rows.archived(FAIL, "failed")
    ours, theirs = "/srv/shop/jobs.py", "/lib/site-packages/x.py"
    text = (
        "Traceback (most recent call last):\n"
        f'  File "{ours}", line 7, in sell\n    order.sell()\n'
        f'  File "{theirs}", line 9, in sell\n    raise ValueError\n'
        "ValueError: no luck"
    )
    frames = [
        {"file": ours, "line": 7, "function": "sell", "project": True},
        {"file": theirs, "line": 9, "function": "sell", "project": False},
    ]
    failures(id, 1, traceback=text, frames=frames)
    found = get(anna, page_of("archivedjob", id))
    styles = [str(li.get("class")) for li in found.all("li")]
    frames_ = [style for style in styles if "frame" in style]
    assert frames_ == ["jq-frame-project", "jq-frame-library"]


def test_long_tracebacks_are_bounded(anna: Client) -> None:
    id = rows.archived(FAIL, "failed")
    failures(id, 20, traceback="x\n" * 100_000, log_tail="y" * 500_000)
    found = get(anna, page_of("archivedjob", id))
    assert len(found.html) < 1_500_000
    assert "Only the beginning of the traceback is shown." in found.text
    fill = "The traceback is not shown, because others fill the page."
    assert fill in found.text


# Data.


def test_numbers_are_shown_with_all_their_digits_and_long_texts_fold(
    anna: Client,
) -> None:
    id = rows.queued()
    deep = '{"one": {"two": {"three": {"four": [1, 2]}}}}'
    text = (
        '{"id": 9007199254740993, "price": 1.10, "long": 0.12345678901234567890123,'
        f' "many": {"7" * 5_000}, "note": "{"x" * 5_000}", "deep": {deep}}}'
    )
    set_data(id, text)
    found = get(anna, page_of("queuedjob", id))
    for shown in (
        '"id": 9007199254740993',
        '"price": 1.10',
        '"long": 0.12345678901234567890123',
        "7" * 2_000,
        "… and 3,002 more characters",
        "x" * 1_999,
        '"two": { 1 key',
        '"four": [ 2 items',
    ):
        assert shown in found.text


def test_data_of_a_megabyte_are_cut_and_can_be_downloaded(anna: Client) -> None:
    for data in (
        {"note": "é" * 1_000_000},
        {"list": [*range(40_000)]},
        {"list": [[[[{}, {"a": 1}]]]] * 6_000},
        {"<b>" * 60_000: ["<b>" * 300_000]},
    ):
        tree = json_tree.of_value(parsed(json.dumps(data)), ())
        assert len(tree.html) < 900_000
        assert tree.is_cut
    id = rows.queued(data=data)
    found = get(anna, page_of("queuedjob", id))
    assert len(found.html) < 1_000_000
    assert "Only the first 65,536 characters are shown." in found.text
    response = anna.get(view_of("queuedjob", id, "download"))
    assert json.loads(response.content) == data


def test_data_that_cannot_be_read_are_not(anna: Client) -> None:
    large, deep = rows.queued(data={"note": "x" * 5_000_000}), rows.queued()
    found = get(anna, page_of("queuedjob", large))
    assert "xxx" not in found.text
    assert "Download as text" in found.text
    set_data(deep, '{"a":' * 3_000 + "1" + "}" * 3_000)
    for address in (page_of("queuedjob", deep), view_of("queuedjob", deep, "download")):
        assert anna.get(address).status_code == 200


def test_a_download_is_a_file_and_masked(anna: Client, log_in: LogIn) -> None:
    id = rows.archived(LEAK, data={"token": SECRET, "n": 1}, result={"password": "p"})
    set_data(id, f'{{"token": "{SECRET}", "n": 1.00}}')
    address = view_of("archivedjob", id, "download")
    response = anna.get(address, {"of": "data"})
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Content-Disposition"].startswith("attachment;")
    assert response.content.decode() == '{\n  "n": 1.00,\n  "token": "••••"\n}\n'
    response = anna.get(address, {"of": "result"})
    assert response.content.decode() == '{\n  "password": "••••"\n}\n'
    # Whoever may not see data may not download them.
    blind = log_in("view_archivedjob", "reveal_job_data")
    assert blind.get(address).status_code == 403
    html = get(blind, page_of("archivedjob", id)).html
    assert address not in html
    assert view_of("archivedjob", id, "reveal") not in html


def test_secrets_are_revealed_once_and_written_down(
    anna: Client, log_in: LogIn, operated: list[dict[str, Any]]
) -> None:
    id = rows.archived(LEAK, "failed", data={"token": SECRET})
    address = view_of("archivedjob", id, "reveal")
    assert anna.get(address).status_code == 405
    for rights in (("view_job_data",), ("reveal_job_data",)):
        client = log_in("view_archivedjob", *rights, name=rights[0])
        assert client.post(address).status_code == 403
    assert not LogEntry.objects.exists()
    client = log_in("view_archivedjob", "view_job_data", "reveal_job_data")
    found = get(client, page_of("archivedjob", id))
    assert SECRET not in found.html
    assert address in found.html
    response = client.post(address)
    assert SECRET in response.content.decode()
    assert "no-store" in response.headers["Cache-Control"]
    (entry,) = LogEntry.objects.all()
    assert (entry.object_id, entry.user.get_username()) == (str(id), "bert")
    assert [(told["verb"], told["by"]) for told in operated] == [("reveal", "bert")]
    again = get(client, page_of("archivedjob", id))
    assert SECRET not in again.html
    assert "Saw the secrets" in again.text


# What is related, and where it is by now.


def test_the_last_jobs_of_the_type_are_marks(anna: Client, log_in: LogIn) -> None:
    failed = [rows.archived_row(FAIL, "failed", run_ms=1_500) for _ in range(62)]
    insert_all(ArchivedJob, [*failed, rows.archived_row(ADD)])
    id = ArchivedJob.objects.filter(job_type_id=FAIL).order_by("-finished_at")[0].pk
    found = get(anna, page_of("archivedjob", id))
    marks = [one for one in found.all("a") if "jq-failed" in str(one.get("class"))]
    assert len(marks) == 59
    assert str(marks[0]["title"]).startswith("failed, ran 1.5 s, ")
    assert "this job" in found.text
    # They lead nowhere for whoever may not see the archive.
    found = get(log_in("view_queuedjob"), page_of("queuedjob", rows.queued(FAIL)))
    assert "The last jobs of this type" in found.text
    assert not [link for link in found.links if "archivedjob" in link]


def test_a_replay_of_a_replay_leads_to_both(anna: Client) -> None:
    first = rows.archived(FAIL, "failed")
    second = rows.archived(FAIL, "failed", replay_of=first, root_id=first)
    third = rows.queued(FAIL, replay_of=second, root_id=first)
    found = get(anna, page_of("queuedjob", third))
    assert {page_of("archivedjob", id) for id in (first, second)} <= {*found.links}
    assert "the first of the line" in found.text
    # What changes is marked for scripts; what is over changes no more.
    live = {"data-jq-region": "job"}
    assert found.all("div", **live)
    assert not get(anna, page_of("archivedjob", first)).all("div", **live)


def test_an_archived_job_shows_the_limit_that_applied(anna: Client) -> None:
    """Not the one that its type has by now."""
    JobType.objects.filter(pk=FAIL).update(max_attempts_override=9)
    for known, shown in ((3, "3 / 3"), (12_345, "3 / 12,345"), (None, "3")):
        limit = {"attempts": 3, "effective_max_attempts": known}
        id = rows.archived(FAIL, "failed", **limit)
        summary = str(page(anna, "archivedjob", id).summary)
        assert f'<bdi class="jq-short">{shown}</bdi>' in summary
    listed = get(anna, list_of("archivedjob"))
    assert "3 / 9" not in listed.text
    for shown in ("3 / 3", "3 / 12,345", "3"):
        assert f'<bdi class="jq-short">{shown}</bdi>' in listed.html


def test_a_job_that_moves_while_its_page_is_made_is_followed(anna: Client) -> None:
    for view in ("change", "edit_data", "download"):
        id = rows.queued(ADD, data={"a": 1, "b": 2})

        def move_before_data_are_read(
            execute: Any, sql: str, params: Any, *more: Any, id: UUID = id
        ) -> Any:
            if '"data")::text' in sql and '"jobqueue_queuedjob"' in sql:
                QueuedJob.objects.filter(pk=id).delete()
                rows.archived(ADD, id=id, data={"a": 1, "b": 2})
            return execute(sql, params, *more)

        with connection.execute_wrapper(move_before_data_are_read):
            response = anna.get(view_of("queuedjob", id, view))
        assert not QueuedJob.objects.filter(pk=id).exists()
        assert response.status_code == 302, view
        assert response["Location"] == page_of("archivedjob", id)


# The timeline: first it is created, last it is over, and time goes on.


SECOND = timedelta(seconds=1)
NOW = timezone.now()


def failed() -> Any:
    """A job that is over; it stays, and is not what is looked at."""
    return archived(status="failed", data={"a": 1, "b": 2})


def by_operation() -> None:
    failed()
    made = bulk.draft("replay", Selection(Table.ARCHIVED))
    assert bulk.start(made.id)
    bulk.WORK.do_chunk(made.id, max_rows=10)


def by_sql() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobqueue_queuedjob (job_type, data) VALUES (%s, %s)",
            [ADD, '{"a": 1, "b": 2}'],
        )


WAYS: dict[str, Callable[[], Any]] = {
    "one": lambda: jobs.add.enqueue(1, 2),
    "many": lambda: jobs.add.enqueue_many({"a": 1, "b": n} for n in range(3)),
    "sql": by_sql,
    "replay": lambda: operations.replay(failed()),
    "replay of many": lambda: operations.replay_many([failed()]),
    "bulk operation": by_operation,
    "by hand": lambda: operations.enqueue(ADD, {"a": 1, "b": 2}),
    "run now": lambda: operations.run_now(
        [jobs.add.using(run_after=timedelta(hours=1)).enqueue(1, 2).id]
    ),
}


def test_however_it_was_enqueued_it_is_created_first(
    anna: Client, worker: HandDriven
) -> None:
    for way, enqueue in WAYS.items():
        enqueue()
        made = QueuedJob.objects.filter(job_type_id=ADD).latest("created_at")
        steps = context(anna, "queuedjob", made.pk)["page"].timeline
        assert steps[0].label == "created", way
        if way != "run now":
            assert len(steps) == 1, way
            assert steps[0].note == "due at once", way
        worker.work()
        assert ArchivedJob.objects.get(pk=made.pk).status == "succeeded"
        steps = context(anna, "archivedjob", made.pk)["page"].timeline
        labels = [str(step.label) for step in steps]
        assert labels[0] == "created", way
        assert labels[-2:] == ["started", "succeeded"], way
    page = get(anna, page_of("archivedjob", made.pk))
    section = page.html.split('class="jq-timeline"')[1].split("</ol>")[0]
    shown = [part.split("</b>")[0] for part in section.split("<b>")[1:]]
    assert shown == labels


class Job:
    def __init__(self, due: timedelta) -> None:
        self.created_at = NOW
        self.run_after = NOW + due


def attempts(*starts: timedelta) -> Attempts:
    """Attempts that began then, after the creation."""
    made = [
        Attempt(
            number=number,
            style="failed",
            end="failed",
            started_at=NOW + start,
            finished_at=NOW + start + SECOND / 2,
        )
        for number, start in enumerate(starts, 1)
    ]
    return Attempts(runs=[Run([one]) for one in reversed(made)])


DUE = [timedelta(days=-1), -SECOND, -SECOND / 1e6, SECOND * 0, SECOND / 1e6]
DUE += [SECOND / 2, SECOND * 3, timedelta(hours=1)]
STARTS: list[tuple[timedelta, ...]] = [(), (SECOND,), (SECOND, 5 * SECOND)]


def test_time_goes_on_from_the_creation_to_the_end() -> None:
    for due, starts, over in product(DUE, STARTS, (True, False)):
        end = Step("over", NOW + 9 * SECOND, style="failed") if over else None
        found = timeline(Job(due), [], attempts(*starts), end)
        labels = [step.label for step in found]
        case = (due, starts, over, labels)
        assert labels[0] == "created", case
        assert labels.count("created") == 1, case
        assert not over or labels[-1] == "over", case
        assert all(one.at <= other.at for one, other in pairwise(found)), case
        assert "due" in labels or "due" in found[0].note, case
        assert [label for label in labels if "attempt" in label] == [
            f"attempt {number}" for number in range(1, len(starts) + 1)
        ], case


def test_attempts_with_one_number_are_not_a_range() -> None:
    """A crash gives the attempt back, so that the next one has its number."""
    one = attempts(SECOND).runs[0].newest
    run = Run([one, one, one])
    labels = [step.label for step in timeline(Job(SECOND * 0), [], Attempts([run]))]
    assert labels == ["created", "attempt 1"]
