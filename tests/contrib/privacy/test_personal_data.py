"""Personal data: found in all tables, erased or deleted, and never recorded."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from itertools import cycle
from typing import Any
from uuid import UUID

import pytest
from django.test import override_settings
from django.utils import timezone

from django_jobqueue import InvalidArguments, operations
from django_jobqueue.contrib.console import job_searches
from django_jobqueue.contrib.console.models import JobSearch
from django_jobqueue.contrib.privacy import erasure_rows, personal_data
from django_jobqueue.contrib.privacy.erase_chunk import MOST_PASSES
from django_jobqueue.contrib.privacy.models import Erasure
from django_jobqueue.contrib.privacy.personal_value import ERASED
from django_jobqueue.contrib.privacy.searched_tables import sources
from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.domain.ids import new_id
from django_jobqueue.exceptions import NotReplayable
from django_jobqueue.models import (
    ArchivedJob,
    AuditEntry,
    BulkOperation,
    Failure,
    JobType,
    KeyOverride,
    QueuedJob,
    Report,
    UniqueWindow,
)
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.store.connection import DjangoDatabase
from tests.contrib.privacy.planted import plant, tables_with, texts
from tests.sample import jobs
from tests.store.rows import ADD, ago, archive, make
from tests.support.refusing_rows import NO, refused
from tests.support.undone import check_each, undone

pytestmark = pytest.mark.django_db

MAIL = "anna@example.com"
OTHER = "joanna@example.com"
NUMBER = "471108154711"  # longer than what stands in an id by chance
ACTS = ("erase", "delete")
EVERY_ACT = pytest.mark.parametrize("act", ACTS)


def of_the_project() -> Any:
    """Queued jobs but for those that work erasures off."""
    return QueuedJob.objects.exclude(job_type_id="jobqueue.bulk")


def run(value: str, act: str, *, key: str = "", max_rows: int = 100) -> Erasure:
    """Find it, start, and do all chunks."""
    id = personal_data.find(value, key=key, by="bert").id
    assert personal_data.start(id, act, by="bert")
    for _ in range(1_000):
        done = personal_data.WORK.do_chunk(id, max_rows=max_rows)
        assert done is not None
        if done.over or done.pause:
            break
    personal_data.WORK.record_end(personal_data.get(id))
    return Erasure.objects.get(pk=id)


VALUES = (MAIL, "Anna Müller", NUMBER, int(NUMBER), 'O"Brien\\x')


@pytest.mark.dear
def test_of_a_value_in_every_column_nothing_is_left() -> None:
    """What is found is what is changed."""

    @undone()
    def check(value: Any, act: str) -> None:
        plant(value)
        spelled = [str(value), json.dumps(value).strip('"')]
        assert len(tables_with(*spelled)) == len(sources())
        found = personal_data.find(str(value))
        assert (found.total, found.rows) == (
            len(sources()),
            dict.fromkeys([one.name for one in sources()], 1),
        )
        personal_data.discard(found.id)
        row = run(str(value), act)
        assert (row.state, row.remaining) == ("done", {})
        assert row.changed == dict.fromkeys([one.name for one in sources()], 1)
        assert tables_with(*spelled) == []

    check_each(check, [*zip(VALUES, cycle(ACTS)), (MAIL, "delete")], least=6)


@pytest.mark.dear
@EVERY_ACT
def test_the_rows_of_other_people_are_untouched(act: str) -> None:
    plant(OTHER)
    JobType.objects.update(paused_by="", paused_reason="", summary_override=None)
    before = texts()
    plant(MAIL)
    JobType.objects.update(paused_by="", paused_reason="", summary_override=None)
    run(MAIL, act)
    after = texts()
    for table, content in before.items():
        if table not in ("jobqueue_jobtype", "jobqueue_worker"):
            assert {*content.splitlines()} <= {*after[table].splitlines()}, table


def test_a_key_of_a_limit_goes_with_the_argument_that_it_is_made_of() -> None:
    """Also if the value is looked for under the name of the argument alone."""
    name, made = jobs.write_keyed.name, {"journal": "j", "key": MAIL}
    ids = [
        archive(name, data=made, limit_key=f"{name} {key}") for key in (MAIL, "other")
    ]
    assert run(MAIL, "erase", key="key").state == "done"
    kept = [ArchivedJob.objects.get(pk=id).limit_key for id in ids]
    assert kept == [f"{name} {ERASED}", f"{name} other"]


@pytest.mark.parametrize(("act", "verb"), [("erase", "UPDATE"), ("delete", "DELETE")])
def test_a_row_that_the_database_refuses_keeps_no_other_from_its_erasure(
    act: str, verb: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The record says how many; the log has no text that may name the value."""
    for data in ({}, NO, {}, NO, {}):
        archive(data={"to": MAIL, **data})
    with refused(verb, "jobqueue_archivedjob"):
        row = run(MAIL, act, max_rows=2)
    assert (row.state, row.value) == ("done", "")
    assert (row.changed, row.remaining) == ({"archived": 3}, {"refused": 2})
    assert row.passes == 2
    assert "P0001" in caplog.text
    assert "not this one" not in caplog.text


@pytest.mark.dear
@EVERY_ACT
def test_two_persons_are_erased_whose_keys_have_overrides(act: str) -> None:
    """The override goes with its key; what comes after it is reached."""
    for name in ("anna", "Anna", "bert"):
        operations.override_limit(
            jobs.write_keyed.name, 1, key=f"{name}@example.com", by=MAIL
        )
    for name in ("anna", "bert"):
        assert run(f"{name}@example.com", act).state == "done"
    assert KeyOverride.objects.count() == 0
    assert tables_with("anna@example.com", "bert@example.com") == []


def test_erased_rows_are_still_there_with_all_else() -> None:
    id = archive(data={"to": MAIL, "order": 7}, result={"sum": 1.5}, tags=["vip"])
    other = archive(data={"to": OTHER})
    for job in (id, other):
        UniqueWindow.objects.create(key=job, job_id=job)
    plant(MAIL)
    run(MAIL, "erase")
    job = ArchivedJob.objects.get(pk=id)
    assert (job.data, job.result) == ({"to": ERASED, "order": 7}, {"sum": 1.5})
    assert (job.tags, job.status) == (["vip"], "succeeded")
    # What would go on with the value is stopped, and its unique key is free.
    assert BulkOperation.objects.get().state == "stopped"
    schedule = Schedule.objects.get(paused=True)
    assert schedule.paused_reason == "personal data erased"
    assert list(UniqueWindow.objects.values_list("job_id", flat=True)) == [other]


def test_deleted_jobs_take_their_failures_and_reports_along() -> None:
    """A job of which only a failure tells stays."""
    id, told = archive(data={"to": MAIL}), archive(data={"a": 1})
    failure = {"job_type": ADD, "number": 1, "end": "failed"}
    Failure.objects.create(job_id=id, **failure)
    Failure.objects.create(job_id=told, error_message=f"no {MAIL}", **failure)
    Report.objects.create(job_id=id, fence=1, number=1)
    run(MAIL, "delete")
    assert [job.pk for job in ArchivedJob.objects.all()] == [told]
    assert not Failure.objects.exists()
    assert not Report.objects.exists()


def test_a_waiting_job_is_cancelled_since_it_could_not_do_its_work() -> None:
    """But for one that only its tags and its user tell of."""
    later = timezone.now() + timedelta(days=1)
    id = make(data={"to": MAIL}, run_after=later)
    make(data={"a": 1}, tags=[MAIL, "vip"], enqueued_by=MAIL)
    run(MAIL, "erase")
    left = of_the_project().get()
    assert (left.tags, left.enqueued_by) == ([ERASED, "vip"], ERASED)
    job = ArchivedJob.objects.get(pk=id)
    assert (job.status, job.data) == ("cancelled", {"to": ERASED})
    assert job.error_message == "personal data erased"


def test_the_followers_of_a_cancelled_job_are_met_by_the_next_pass() -> None:
    followers = {"on_complete": [ADD]}
    make(data={"a": 1}, metadata={"of": MAIL}, followers=followers)
    row = run(MAIL, "erase")
    assert row.changed["queued"] == 2
    assert row.passes == 3  # the last one finds nothing
    assert not tables_with(MAIL)


@pytest.mark.dear
@pytest.mark.parametrize("ends", [False, True])
def test_a_job_that_is_replayed_and_pruned_meanwhile_is_erased(ends: bool) -> None:
    """After the look at the queue, and before that at the archive."""
    old = archive(ADD, data={"a": MAIL})
    id = personal_data.find(MAIL).id
    assert personal_data.start(id, "erase")
    personal_data.WORK.do_chunk(id, max_rows=100)
    new = operations.replay(old, run_after=timezone.now() + timedelta(days=1)).id
    operations.prune_jobs([old])
    while (done := personal_data.WORK.do_chunk(id, max_rows=100)) and not done.over:
        if ends and Erasure.objects.get(pk=id).position[0] == len(sources()):
            operations.cancel([new])
            ends = False
    assert tables_with(MAIL) == []
    assert Erasure.objects.get(pk=id).changed.keys() & {"queued", "archived"}


@EVERY_ACT
def test_a_running_job_is_left_and_met_by_the_next_pass(act: str) -> None:
    id = make(data={"to": MAIL}, status="running", started_at=ago(5), attempts=1)
    row = run(MAIL, act)
    assert (row.state, row.remaining, row.value) == ("running", {"running": 1}, MAIL)
    assert of_the_project().get().data == {"to": MAIL}
    of_the_project().delete()  # as a worker does
    archive(id=id, data={"to": MAIL})
    while (
        done := personal_data.WORK.do_chunk(row.pk, max_rows=100)
    ) is not None and not done.over:
        assert not done.pause
    row.refresh_from_db()
    assert (row.state, row.remaining, row.value) == ("done", {}, "")
    assert not tables_with(MAIL)


@pytest.mark.dear
def test_an_erasure_does_not_wait_forever_and_tells_what_remains() -> None:
    make(data={"to": MAIL}, status="running", started_at=ago(5), attempts=1)
    row = run(MAIL, "erase")
    pauses = []
    while (done := personal_data.WORK.do_chunk(row.pk, max_rows=100)) is not None:
        pauses += [done.pause] if done.pause else []
    row.refresh_from_db()
    assert (row.state, row.remaining, row.value) == ("done", {"running": 1}, "")
    assert row.passes == MOST_PASSES
    assert pauses == sorted(pauses)
    assert len(pauses) == MOST_PASSES - 2


@pytest.mark.dear
def test_a_search_for_the_value_is_stopped_and_forgets_it() -> None:
    term = Term("data", MAIL, path=("email",))
    table = Table.ARCHIVED
    for key in ("", "email"):
        wanted = {table: Selection(table, (term,))}
        id = job_searches.start(f"data.email:{MAIL}", wanted)
        run(MAIL, "erase", key=key)
        search = JobSearch.objects.get(pk=id)
        assert MAIL not in search.query + json.dumps(search.selections)
        assert (search.state, search.finished_at is None) == ("stopped", False)


@pytest.mark.dear
@EVERY_ACT
def test_the_act_is_recorded_without_the_value(
    act: str, operated: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    archive(data={"to": MAIL})
    with caplog.at_level(logging.DEBUG, logger="django_jobqueue"):
        row = run(MAIL, act)
    assert (row.value, row.created_by) == ("", "bert")
    verbs = [f"{verb} personal data" for verb in ("find", f"start {act}", f"end {act}")]
    entries = AuditEntry.objects.order_by("id")
    assert list(entries.values_list("verb", flat=True)) == verbs
    assert [one["verb"] for one in operated] == verbs
    entry = AuditEntry.objects.latest("id")
    assert (entry.by, entry.count, entry.about) == ("bert", 1, [str(row.pk)])
    assert entry.details["fingerprint"] == row.fingerprint
    assert MAIL not in str(operated) + caplog.text
    assert not tables_with(MAIL)


def test_a_reason_is_kept_without_the_value() -> None:
    archive(data={"to": MAIL})
    id = personal_data.find(MAIL, key="to").id
    personal_data.start(id, "erase", reason=f"asked by {MAIL}, ticket 7", by="bert")
    assert Erasure.objects.get().reason == f"asked by {ERASED}, ticket 7"
    assert tables_with(MAIL) == ["jobqueue_archivedjob", "jobqueue_privacy_erasure"]


def test_the_fingerprint_is_keyed_and_survives_a_new_key() -> None:
    with override_settings(SECRET_KEY="old"):
        old = personal_data.fingerprints(MAIL)[0]
    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["old"]):
        new, before = personal_data.fingerprints(MAIL)
    assert old == before != new


@pytest.mark.dear
def test_a_second_erasure_finds_nothing_and_learns_of_the_first() -> None:
    plant(MAIL)
    first = run(MAIL, "erase")
    assert personal_data.find(MAIL).total == 0
    before = texts()
    row = run(MAIL, "erase")
    assert (row.changed, row.passes) == ({}, 1)
    assert texts()["jobqueue_archivedjob"] == before["jobqueue_archivedjob"]
    earlier = personal_data.earlier(f" {MAIL.upper()} ")
    assert {one.id for one in earlier if one.state == "done"} >= {first.pk, row.pk}
    assert personal_data.earlier(OTHER) == []


@pytest.mark.dear
def test_each_chunk_goes_on_where_the_last_one_ended() -> None:
    to = (MAIL, OTHER) * 5
    ArchivedJob.objects.bulk_create(
        ArchivedJob(id=new_id(), job_type_id=ADD, status="failed", data={"to": one})
        for one in to
    )
    row = run(MAIL, "erase", max_rows=2)
    assert row.changed == {"archived": 5}
    assert not tables_with(f'"{MAIL}"')
    assert ArchivedJob.objects.filter(data={"to": OTHER}).count() == 5


@pytest.mark.dear
def test_with_a_key_only_what_stands_under_it_is_erased() -> None:
    archive(data={"customer_id": 7, "seats": 7}, error_message="customer_id 7")
    row = run("7", "erase", key="customer_id")
    job = ArchivedJob.objects.get()
    assert job.data == {"customer_id": ERASED, "seats": 7}
    assert job.error_message == "customer_id 7"
    assert row.changed == {"archived": 1}


@pytest.mark.dear
def test_a_stopped_erasure_forgets_the_value() -> None:
    archive(data={"to": MAIL})
    id = personal_data.find(MAIL).id
    assert personal_data.start(id, "erase")
    assert not personal_data.start(id, "delete")
    assert not personal_data.discard(id)
    assert Erasure.objects.get().act == "erase"
    assert personal_data.stop(id, by="bert")
    row = Erasure.objects.get()
    assert (row.state, row.value) == ("stopped", "")
    assert personal_data.WORK.do_chunk(id, max_rows=100) is None
    assert not personal_data.stop(id)
    assert ArchivedJob.objects.get().data == {"to": MAIL}
    assert personal_data.discard(personal_data.find(MAIL).id)
    assert Erasure.objects.get() == row


def test_only_the_job_that_works_it_off_does_a_chunk() -> None:
    """One that failed is resumed by another job."""
    id = personal_data.find(MAIL).id
    personal_data.start(id, "erase")
    first = Erasure.objects.get().job_id
    assert personal_data.WORK.do_chunk(id, max_rows=100, job=UUID(int=1)) is None
    personal_data.WORK.fail(id, "OperationalError 57014")
    assert personal_data.resume(id, by="bert")
    row = Erasure.objects.get()
    assert (row.state, row.error) == ("queued", "")
    assert row.job_id != first
    assert not personal_data.resume(id)
    assert personal_data.WORK.do_chunk(id, max_rows=100, job=first) is None
    assert personal_data.WORK.do_chunk(id, max_rows=100, job=row.job_id) is not None


def test_values_that_nobody_came_back_for_are_forgotten() -> None:
    drafted, failed, kept = (personal_data.find(MAIL).id for _ in range(3))
    personal_data.start(failed, "erase")
    personal_data.WORK.fail(failed, "OperationalError")
    Erasure.objects.filter(pk=drafted).update(created_at=ago(90_000))
    Erasure.objects.filter(pk=failed).update(finished_at=ago(700_000))
    erasure_rows.forget(DjangoDatabase())
    rows = dict(Erasure.objects.values_list("pk", "value"))
    assert rows == {failed: "", kept: MAIL}
    assert Erasure.objects.get(pk=failed).state == "stopped"


def test_what_cannot_be_is_refused() -> None:
    for value, key in (("", ""), ("abc", ""), ("7", "")):
        with pytest.raises(InvalidArguments):
            personal_data.find(value, key=key)
    id = personal_data.find(MAIL).id
    with pytest.raises(InvalidArguments):
        personal_data.start(id, "explode")
    with pytest.raises(LookupError):
        personal_data.get(UUID(int=1))


@pytest.mark.dear
def test_an_erased_job_is_not_replayed_as_it_is() -> None:
    id = archive(ADD, "failed", data={"a": 1, "b": MAIL})
    run(MAIL, "erase")
    with pytest.raises(NotReplayable, match="erased"):
        operations.replay(id)
    assert operations.replay_many([id]).left_out == {id: "erased"}
    assert operations.replay(id, data={"a": 1, "b": 2}).data == {"a": 1, "b": 2}
