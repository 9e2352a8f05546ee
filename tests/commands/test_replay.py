"""``jobqueue replay``."""

from __future__ import annotations

import getpass
import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management.base import CommandError
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.management.jobqueue import batches, many_jobs
from django_jobqueue.models import ArchivedJob, BulkOperation, JobType, QueuedJob
from django_jobqueue.operations import bulk
from django_jobqueue.store.work_rows import Chunk
from tests.commands.conftest import (
    Said,
    Terminal,
    jobqueue,
    make_archived,
    needs_rich,
    not_refused,
    refusal,
)
from tests.sample import jobs
from tests.support.rows import queued

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def replay(line: str, **options: Any) -> Said:
    return jobqueue(f"replay {line}", **options)


def replayed(**filters: Any) -> list[UUID]:
    return [job.replay_of for job in queued(**filters)]


def test_a_job_is_replayed_once_by_its_id_with_its_prefix_or_without() -> None:
    (id,) = make_archived(status="succeeded")
    said = replay(f"job_{id} {id}")
    (job,) = queued()
    assert job.replay_of == id
    assert job.enqueued_by == f"command line ({getpass.getuser()})"
    assert said.out == f"{id} was replayed as {job.id}\n"
    assert ArchivedJob.objects.filter(id=id).exists()


def test_by_id_a_job_is_replayed_again_only_when_that_is_said() -> None:
    (id,) = make_archived()
    replay(f"{id}")
    why = f"Job {id} was replayed before; --again replays it again."
    assert refusal(f"replay {id}") == refusal(f"replay {id} --dry-run") == why
    replay(f"{id} --again")
    assert replayed() == [id, id]
    well, badly = make_archived(2, ago=HOUR)
    make_archived(replay_of=well, status="succeeded")
    make_archived(replay_of=badly, status="cancelled", attempts=1)
    replay(f"{badly} --skip-replayed succeeded")
    assert refusal(f"replay {well} --skip-replayed succeeded")
    assert replayed() == [id, id, badly]


def test_the_others_are_replayed_when_one_id_cannot_be() -> None:
    (gone,), (id,) = make_archived(job_type_id="old.type"), make_archived()
    waiting, missing = jobs.add.enqueue(1), uuid4()
    reasons = refusal(f"replay {missing} {waiting.id} {gone} {id}").splitlines()
    assert reasons[:2] == [
        f"There is no job {missing}, neither queued nor archived. It may have been "
        "pruned, or the transaction that enqueued it was rolled back.",
        f"Job {waiting.id} is queued; only a finished job can be replayed. Wait "
        "for it to end, or cancel it first.",
    ]
    assert reasons[2].startswith(f"Job {gone}: There is no job type 'old.type'.")
    assert replayed() == [None, id]


def test_of_many_wrong_ids_only_the_first_are_explained() -> None:
    lines = refusal("replay", *(str(uuid4()) for _ in range(15))).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "… and 5 other ids."


def test_new_jobs_can_wait_and_go_to_another_queue_with_another_priority() -> None:
    (id,) = make_archived()
    said = replay(f"{id} --run-after 1h --queue defualt --priority -5")
    (job,) = queued()
    assert (job.queue, job.priority) == ("defualt", -5)
    waits = job.run_after - timezone.now()
    assert timedelta(minutes=59) < waits < timedelta(minutes=61)
    assert said.err == (
        "No job type, worker or job names the queue 'defualt'. Did you mean "
        "'default'?\n"
    )


def test_a_replay_has_the_same_time_to_live_unless_another_one_is_chosen() -> None:
    now = timezone.now()
    (id,) = make_archived(created_at=now - 3 * HOUR, expires_at=now - 2 * HOUR)
    assert replay(f"{id} --expires keep").err == (
        "1 job will expire again at once; pass --expires same or --expires never to "
        "avoid that.\n"
    )
    for flags in ("", "--expires same", "--expires never"):
        assert replay(f"{id} --again {flags}").err == ""
    keep, same, chosen, never = (job.expires_at for job in queued())
    assert keep == now - 2 * HOUR
    for moment in (same, chosen):
        assert timedelta(minutes=59) < moment - timezone.now() < timedelta(minutes=61)
    assert never is None


def test_a_dry_run_counts_shows_examples_and_changes_nothing() -> None:
    ids = make_archived(7, error_class="shop.errors.Gone")
    lines = replay("--status failed --dry-run").out.splitlines()
    assert lines[:2] == ["7 jobs would be replayed.", "For example:"]
    assert lines[2].split() == ["Job", "Job", "type", "Ended", "ago", "Outcome"]
    assert [line.split()[0] for line in lines[3:]] == [str(id) for id in ids[:5]]
    assert lines[3].split()[-1] == "shop.errors.Gone"
    limited = replay("--status failed --limit 2 --dry-run").out
    assert limited.startswith("2 jobs would be replayed.")
    assert len(limited.splitlines()) == 5
    missing = uuid4()
    told = refusal(f"replay --dry-run {ids[0]} {missing}")
    assert told.startswith(f"There is no job {missing}")
    assert replayed() == []
    assert not BulkOperation.objects.exists()


@needs_rich
def test_a_filter_is_a_bulk_operation_that_the_command_works_off_behind_a_bar(
    operated: list[dict[str, Any]], chunks_of_two: None
) -> None:
    ids = make_archived(5)
    ArchivedJob.objects.update(finished_at=timezone.now() - timedelta(minutes=1))
    said = replay("--status failed --yes", stdout=Terminal())
    assert sorted(replayed()) == sorted(ids)
    row = BulkOperation.objects.get()
    assert (row.state, row.changed, row.job_id) == ("done", 5, None)
    assert {job.bulk_operation_id for job in queued()} == {row.id}
    assert [(told["verb"], told["count"]) for told in operated] == [
        ("start bulk replay", 5),
        ("end bulk replay", 5),
    ]
    assert {told["by"] for told in operated} == {f"command line ({getpass.getuser()})"}
    assert "2 / 5  40.0 %" in said.out
    assert said.out.endswith("\x1b[2K5 jobs were replayed.\n")


def test_an_operation_that_an_operator_stops_meanwhile_says_so(
    monkeypatch: pytest.MonkeyPatch, chunks_of_two: None
) -> None:
    make_archived(3)

    def stop_after_a_chunk(id: UUID) -> Iterator[Chunk]:
        steps = bulk.work_here(id)
        yield next(steps)
        operations.bulk.stop(id)
        yield from steps

    monkeypatch.setattr(many_jobs, "work_here", stop_after_a_chunk)
    why = refusal("replay --status failed --yes")
    row = BulkOperation.objects.get()
    assert why == f"Bulk operation {row.id} is stopped by now. 2 jobs were replayed."
    assert len(queued()) == 2


def test_a_worker_that_does_the_others_is_no_error(
    monkeypatch: pytest.MonkeyPatch, chunks_of_two: None
) -> None:
    make_archived(3)

    def let_another_go_on(id: UUID) -> Iterator[Any]:
        yield next(bulk.work_here(id))
        assert operations.bulk.resume(id)
        list(bulk.work_here(id))

    monkeypatch.setattr(many_jobs, "work_here", let_another_go_on)
    said = replay("--status failed --yes")
    assert said == Said(
        "2 jobs were replayed.\n", "A worker finished the remaining jobs.\n"
    )
    assert QueuedJob.objects.exclude(replay_of=None).count() == 3


def test_a_run_that_was_interrupted_says_how_far_it_came_and_can_go_on(
    monkeypatch: pytest.MonkeyPatch, chunks_of_two: None
) -> None:
    ids = make_archived(5)

    def interrupt(id: UUID) -> Iterator[Chunk]:
        for chunk in bulk.work_here(id):
            os.kill(os.getpid(), signal.SIGINT)
            yield chunk

    with monkeypatch.context() as patched:
        patched.setattr(many_jobs, "work_here", interrupt)
        with pytest.raises(CommandError) as refused:
            replay("--status failed --yes")
    row = BulkOperation.objects.get()
    assert str(refused.value) == (
        "Interrupted. 2 jobs were replayed. Workers do the others: to end that, "
        f"write jobqueue operations stop {row.id}"
    )
    assert refused.value.returncode == batches.INTERRUPTED == 130
    assert len(queued(job_type="tests.sample.add")) == 2
    assert (row.state, row.job_id) == ("queued", queued(job_type="jobqueue.bulk")[0].id)
    jobqueue(f"operations stop {row.id}")
    replay("--status failed --yes")
    assert sorted(replayed(job_type="tests.sample.add")) == sorted(ids)


def test_matching_jobs_whose_type_is_gone_are_counted_apart() -> None:
    make_archived(2, job_type_id="old.type")
    JobType.objects.create(name="elsewhere.report")  # its own row is enough
    (id,) = make_archived(job_type_id="elsewhere.report")
    said = replay("--status failed --dry-run")
    assert said.out.startswith("1 job would be replayed.")
    assert said.err == "2 more jobs cannot be replayed, because the job type is gone.\n"
    replay("--type elsewhere.report --yes")
    assert replayed() == [id]


def test_jobs_of_at_most_once_types_are_left_out_unless_they_are_wanted() -> None:
    (once,) = make_archived(job_type_id="tests.sample.write_once")
    (other,) = make_archived()
    said = replay("--status failed --yes")
    assert replayed() == [other]
    assert said.err == (
        "1 job was skipped: of an at-most-once type; --at-most-once takes them, too.\n"
    )
    again = replay("--status failed --yes")
    assert "Of those that match, 1 job was replayed before" in again.err
    assert refusal(f"replay {once}") == (
        f"Job {once} is of an at-most-once type, and may have run; --at-most-once "
        "replays it."
    )
    replay("--status failed --at-most-once --yes")
    replay(f"{once} --at-most-once --again")
    assert replayed() == [other, once, once]


def test_with_verbosity_0_only_what_was_asked_for_is_printed() -> None:
    (id,) = make_archived(expires_at=timezone.now() - HOUR)
    assert replay("--status failed", verbosity=0) == Said("", "")
    said = replay(f"{id} --again", verbosity=0)
    assert said.out.startswith(f"{id} was replayed as ")


def test_what_makes_no_sense_is_refused_with_a_reason() -> None:
    (id,) = make_archived()
    filters = (
        "--where, --status, --type, --since, --until, --older-than, --error or --group"
    )
    reasons = {
        "": f"Name jobs by id, or choose them by {filters}.",
        f"{id} --type tests.sample.add": f"or choose them by {filters}, not both.",
        f"{id} --limit 3": "--limit goes with a filter, not with ids.",
        f"{id} --queue a,b": "queue must have no space",
        "7": "'7' is not a job id: give it, or its first 6 or more digits.",
        "--type tests.sample.addd": "Did you mean 'tests.sample.add'",
        "--status fialed": "argument --status: invalid choice: 'fialed'",
        "--status failed --limit x": "must be a whole number of at least 1, not 'x'",
        "--since soon": "--since: 'soon' is not a time. Write a duration",
        "--until soon": "--until: 'soon' is not a time. Write a duration",
        "--since 1h --priority 101": "priority must be",
        "--since 1h --run-after x": "--run-after: 'x' is not a time.",
        "--since 1h --expires 2h": "argument --expires: invalid choice",
    }
    assert not_refused("replay", reasons) == {}
    assert not QueuedJob.objects.exists()
    assert not BulkOperation.objects.exists()
