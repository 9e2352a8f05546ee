"""``--where`` and its short forms: which jobs the commands choose."""

from __future__ import annotations

import io
import os
import re
import signal
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.admin import site
from django.contrib.auth import get_user_model
from django.contrib.messages.storage.fallback import FallbackStorage
from django.db import transaction
from django.test import RequestFactory
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.management.jobqueue import job_verbs, where
from django_jobqueue.models import ArchivedJob, BulkOperation, QueuedJob
from django_jobqueue.search.parser import qualifiers
from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.store.bulk.selected_ids import selected_ids
from django_jobqueue.store.connection import DjangoDatabase
from tests.admin import scene
from tests.admin.scene import ADD, Scene, build
from tests.commands.conftest import (
    Terminal,
    jobqueue,
    make_archived,
    not_refused,
    refusal,
)
from tests.sample import jobs
from tests.support.rows import archived, queued

pytestmark = pytest.mark.django_db

MODELS: dict[Table, Any] = {Table.QUEUED: QueuedJob, Table.ARCHIVED: ArchivedJob}
SEARCHES = {
    Table.QUEUED: [
        "add",
        "type:sample.fail",
        "type:tests.sample.add state:ready",
        "state:lapsed",
        "state:retrying error:ValueError",
        "luck",
        "queue:default attempts:>0",
        "attempts:1..2",
        "due:<+10m",
        "created:today",
        "data.a:1",
        'data.token:"hunter2-is-not-a-password"',
        "worker:web-1:1",
        "tag:vip",
        "priority:<0",
        "type:nothing_like_it",
        "by:anna",
        "started:>-1h",
        "replay-of:018f0000-0000-7000-8000-000000000001",
        "operation:018f0000-0000-7000-8000-000000000001",
        "text:luck",
        "due:>now state:later",
        "attempts:0 priority:>=-3 created:>-1d",
    ],
    Table.ARCHIVED: [
        "add",
        "status:failed",
        "status:failed error:ValueError ran:>1s",
        "data.b:2",
        "finished:>-1h",
        "finished:<-1h",
        "release:r7",
        "text:wanted",
        "by:anna",
        "replayed:no",
        '"not wanted"',
        "waited:<1s",
        "type:tests.sample.fail queue:default",
        "priority:<0 tag:vip",
        "attempts:>=1",
        "worker:web-1:1",
        "replay-of:018f0000-0000-7000-8000-000000000001",
        "operation:018f0000-0000-7000-8000-000000000001",
        "created:today",
        "due:<now",
        "started:>-1d",
        "data.a:1 data.b:2",
    ],
}


@pytest.mark.parametrize("table", Table)
def test_every_word_of_the_language_is_searched_for(table: Table) -> None:
    searches = " ".join([*SEARCHES[table], "group:"])
    names = {name.removesuffix(".key") for name in qualifiers(table)}
    assert names - set(re.findall(r"\b([a-z-]+)[:.]", searches)) == set()


def listed(table: Table, text: str) -> set[UUID]:
    """The jobs that the admin's list shows for a search."""
    request: Any = RequestFactory().get("/", {"q": text})
    user, _ = get_user_model().objects.get_or_create(
        username="anna", is_staff=True, is_superuser=True
    )
    request.user, request.session = user, {}
    request._messages = FallbackStorage(request)  # private: as the middleware does
    owner: Any = site.get_model_admin(MODELS[table])
    shown = owner.get_changelist_instance(request)
    return set(shown.queryset.values_list("pk", flat=True))


def chosen(table: Table, text: str) -> set[UUID]:
    """The jobs that a command takes for the same search."""
    terms = where.searched(table, text, timezone.now())
    selection = Selection(table, tuple(terms))
    found = selected_ids(DjangoDatabase(), selection, most=3)
    return {id for some in found for id in some}


@pytest.mark.dear
@pytest.mark.parametrize("table", Table)
def test_a_command_takes_the_jobs_that_the_admin_lists(table: Table) -> None:
    rows: Scene = build()
    ids = list((rows.queued if table is Table.QUEUED else rows.archived).values())
    MODELS[table].objects.filter(pk__in=ids[:2]).update(
        priority=-3, tags=["vip"], enqueued_by="anna"
    )
    searches = [
        *SEARCHES[table],
        str(ids[0]),
        f"{ids[0]} {ids[1]}",
        ids[0].hex[:8],
        f"group:{rows.group}",
    ]
    sizes = set()
    for text in searches:
        found = chosen(table, text)
        assert found == listed(table, text), text
        sizes.add(len(found))
    assert len(sizes) > 3  # none, one, some and many


def dry_run(line: str) -> Any:
    return jobqueue(f"{line} --dry-run --format json").json


def test_short_forms_are_terms_of_the_search() -> None:
    rows = build()
    ids = dict(rows.queued)
    ids["old"] = scene.queued(created_at=timezone.now() - timedelta(days=2))
    forms = {
        "--where 'state:ready data.a:1'": "ready",
        "--where state:ready --where data.a:1": "ready",
        "--where state:later --type sample.add": "later",
        f"--type {ADD} --older-than 1d": "old",
        "--where state:ready --older-than 1d": "old",
        f"--group {rows.group.hex[:8]}": "retrying",
    }
    found = {flags: dry_run(f"cancel {flags}")["ids"] for flags in forms}
    assert found == {flags: [str(ids[name])] for flags, name in forms.items()}


def test_short_forms_choose_archived_jobs() -> None:
    hours = timedelta(hours=1)
    (wanted,) = make_archived(error_class="shop.Gone")
    (older,) = make_archived(error_class="Gone", ago=3 * hours)
    make_archived(status="succeeded")
    make_archived(job_type_id="tests.sample.write", error_class="Gone")
    make_archived(error_class="shop.NotGone")
    make_archived(error_class="Gone", ago=timedelta(seconds=1))
    (expired,) = make_archived(status="expired", ago=4 * hours)
    gone = f"--status failed --type {ADD} --error Gone --until 1m"
    forms = {
        f"{gone} --since 2h": [wanted],
        gone: [wanted, older],
        "--status cancelled --status expired": [expired],
    }
    found = {flags: set(dry_run(f"replay {flags}")["ids"]) for flags in forms}
    assert found == {flags: set(map(str, ids)) for flags, ids in forms.items()}


@pytest.mark.parametrize(
    ("verb", "flags", "name", "seen"),
    [
        ("cancel", "", "ready", {"status": "cancelled"}),
        ("fail", "--reason 'given up'", "retrying", {"status": "failed"}),
        ("release", "", "lapsed", {"status": "queued", "crashes": 1}),
        ("reschedule", "--priority 9", "later", {"priority": 9}),
        ("reschedule", "--queue slow", "later", {"queue": "slow"}),
        ("run-now", "", "later", {"status": "queued"}),
    ],
)
def test_each_verb_changes_the_jobs_that_were_named_and_no_others(
    verb: str,
    flags: str,
    name: str,
    seen: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = build()
    id = rows.queued[name]
    text = {"ready": "state:ready data.a:1", "later": "state:later attempts:0"}
    search = f"{text.get(name, f'state:{name}')} {id}"
    others = QueuedJob.objects.exclude(pk=id)
    before = list(others.values())
    for which in (f"{id}", "-", f"--where '{search}'"):
        with transaction.atomic():
            monkeypatch.setattr("sys.stdin", io.StringIO(f"{id}\n\n"))
            dry = dry_run(f"{verb} {which} {flags}")
            assert (dry["count"], dry["ids"], dry["dry_run"]) == (1, [str(id)], True)
            monkeypatch.setattr("sys.stdin", io.StringIO(f"{id}\n"))
            done = jobqueue(f"{verb} {which} {flags} --format json").json

            assert (done["count"], done["dry_run"], done["problems"]) == (1, False, [])
            assert list(others.values()) == before
            (job,) = [*queued(id=id), *archived(id=id)]
            assert {key: getattr(job, key) for key in seen} == seen
            if verb == "run-now":
                assert isinstance(job, QueuedJob)
                assert job.run_after <= timezone.now()
            transaction.set_rollback(True)


def test_what_makes_no_sense_is_refused_and_nothing_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    rows = build()
    reasons = {
        "cancel --where stat:ready": "--where: There is no “stat:”. Did you",
        "cancel --where status:failed": "There is no state “failed”,",
        "cancel --where ' '": "--where: say which jobs, such as",
        """cancel --where 'error:"x'""": "an unclosed quotation mark",
        "cancel --where type:tests.sample": "More than one job type has",
        "cancel --type fail": "More than one job type is called so: tests.",
        "fail --where add": "Say why: --reason.",
        "reschedule --where add": "Give --run-after,",
        "run-now": "Name jobs by id, or choose them by --where, --type, --queue,",
        "run-now -": "Standard input has no ids.",
        f"run-now {UUID(int=7)} --where add": "not both.",
        "release --filter x": "Write --where 'state:retrying'.",
        "prune --where stat:x": "--where: There is no “stat:”.",
    }
    assert not_refused("", reasons) == {}
    assert QueuedJob.objects.count() == len(rows.queued)
    assert not BulkOperation.objects.exists()


def test_ids_that_a_verb_cannot_change_are_explained() -> None:
    rows, missing = build(), uuid4()
    later, running = rows.queued["later"], rows.queued["running"]
    wrong = f"{running} {rows.archived['failed']} {missing}"
    lines = refusal(f"run-now {later} {wrong} --yes").splitlines()
    assert lines[0].endswith("is running; only a waiting job can be changed.")
    assert lines[1].endswith("has finished already (failed).")
    assert lines[2].startswith(f"There is no job {missing}")
    assert QueuedJob.objects.get(pk=later).run_after <= timezone.now()


@pytest.mark.parametrize("verb", ["cancel", "fail", "run-now", "prune"])
def test_more_than_one_job_needs_a_yes(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.add.enqueue_many([{"a": 1}] * 2)
    make_archived(2)
    line = f"{verb} --where type:sample.add {'--reason x' if verb == 'fail' else ''}"
    assert "More than one needs confirmation" in refusal(line)
    monkeypatch.setattr("sys.stdin", Terminal("no\n"))
    assert refusal(line).startswith("Nothing was")
    assert (QueuedJob.objects.count(), ArchivedJob.objects.count()) == (2, 2)
    for flag in ("--yes", "-y", "--no-input", "--noinput"):
        with transaction.atomic():
            assert jobqueue(f"{line} {flag}").out.startswith("2 jobs were ")
            transaction.set_rollback(True)


def test_jobs_fail_in_batches_that_ctrl_c_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that join later are left alone."""
    ids = jobs.add.enqueue_many([{"a": 1}] * 5)
    jobs.fail.enqueue()
    fail, batches = operations.fail, []
    interrupts = True

    def failing(ids: list[UUID], **how: Any) -> list[UUID]:
        jobs.add.enqueue(2)
        batches.append(len(ids))
        if interrupts:
            os.kill(os.getpid(), signal.SIGINT)
        return fail(ids, **how)

    monkeypatch.setattr(job_verbs, "BATCH", 2)
    verb = job_verbs.FAIL.verb._replace(function=failing)
    monkeypatch.setattr(job_verbs.FAIL, "verb", verb)
    line = "fail --type tests.sample.add --where data.a:1 --reason 'given up' --yes"
    assert refusal(line) == "Interrupted. 2 jobs were failed."
    assert batches == [2]
    interrupts = False
    assert jobqueue(line).out == "3 jobs were failed.\n"
    assert batches == [2, 2, 1]
    over = archived(status="failed")
    assert {job.id for job in over} == set(ids)
    assert {job.error_message for job in over} == {"given up"}
    assert len(queued()) == 4


def test_the_question_says_which_statuses_the_jobs_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_archived(2)
    make_archived(3, status="succeeded")
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    said = jobqueue("replay --where type:sample.add")
    assert said.err == (
        "5 jobs (2 failed, 3 succeeded) will be replayed. Go on? [y/N] "
    )
    assert QueuedJob.objects.count() == 5


def test_bulk_operations_are_listed_shown_stopped_and_undone() -> None:
    make_archived(3)
    assert jobqueue("operations").out == "No bulk operations.\n"
    jobqueue("replay --status failed --yes")
    (row,) = BulkOperation.objects.all()
    (one,) = jobqueue("operations --format json").json
    assert (one["id"], one["state"], one["changed"]) == (str(row.pk), "done", 3)
    assert one["filter"] == "archived: status=failed"
    assert str(row.pk) in jobqueue("operations list --state done").out
    assert "3 of 3" in jobqueue(f"operations show {row.pk.hex[:12]}").out
    assert "is done: it cannot be stopped" in refusal(f"operations stop {row.pk}")
    assert "More than one needs conf" in refusal(f"operations undo {row.pk}")
    assert BulkOperation.objects.count() == 1
    said = jobqueue(f"operations undo {row.pk} --yes")
    assert "cancels 3 created jobs that have not started" in said.out
    undo = BulkOperation.objects.exclude(pk=row.pk).get()
    assert (undo.kind, undo.state, undo.reason) == ("cancel", "queued", "undone")
    for verb, state in (("pause", "paused"), ("resume", "queued"), ("stop", "stopped")):
        jobqueue(f"operations {verb} {undo.pk}")
        assert operations.bulk.get(undo.pk).state == state
    for wrong, why in (("7", "'7' is not an id"), ("abcdef", "There is no bulk")):
        assert why in refusal(f"operations show {wrong}")


def test_a_result_has_the_keys_that_its_help_names() -> None:
    build()
    keys = "verb dry_run count asked_to_stop operation skipped ids replays problems"
    for verb in ("cancel", "replay", "run-now", "release"):
        assert list(dry_run(f"{verb} --where type:sample.add")) == keys.split()
