"""``jobqueue replay``."""

from __future__ import annotations

import getpass
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management.base import CommandError
from django.utils import timezone

from django_jobqueue import InvalidArguments, operations
from django_jobqueue.management.jobqueue import batches, by_filter
from django_jobqueue.models import ArchivedJob, BulkOperation, JobType, QueuedJob
from django_jobqueue.operations import bulk_steps
from django_jobqueue.store.bulk.chunk import Chunk
from tests.commands.conftest import Terminal, jobqueue, make_archived, needs_rich
from tests.sample import jobs
from tests.support.rows import queued

pytestmark = pytest.mark.django_db


def replayed() -> list[UUID]:
    """The archived jobs that have a queued replay."""
    return [job.replay_of for job in queued()]


def refusal(*arguments: str) -> str:
    """What the command says when it refuses; nothing may have been replayed."""
    with pytest.raises(CommandError) as refused:
        jobqueue("replay", *arguments)
    assert not QueuedJob.objects.exists()
    return str(refused.value)


def test_a_job_is_replayed_by_its_id() -> None:
    (id,) = make_archived()
    said = jobqueue("replay", str(id))
    (job,) = queued()
    assert job.replay_of == id
    assert job.enqueued_by == f"command line ({getpass.getuser()})"
    assert said.out == f"{id} was replayed as {job.id}\n"
    assert ArchivedJob.objects.filter(id=id).exists()


def test_an_id_may_have_its_prefix_and_is_replayed_once() -> None:
    (id,) = make_archived()
    jobqueue("replay", f"job_{id}", str(id))
    assert replayed() == [id]


def test_by_id_a_job_is_replayed_whatever_its_status() -> None:
    (id,) = make_archived(status="succeeded")
    jobqueue("replay", str(id))
    assert replayed() == [id]


def test_by_id_a_job_is_replayed_again_only_when_that_is_said() -> None:
    (id,) = make_archived()
    jobqueue("replay", str(id))
    for more in ([], ["--dry-run"]):
        with pytest.raises(CommandError) as refused:
            jobqueue("replay", str(id), *more)
        assert str(refused.value) == (
            f"Job {id} was replayed before; --again replays it again."
        )
    jobqueue("replay", str(id), "--again")
    assert replayed() == [id, id]


@pytest.mark.parametrize("arguments", [["--status", "failed"], ["ids"]])
def test_jobs_whose_replay_failed_can_be_taken_again(arguments: list[str]) -> None:
    well, badly = make_archived(2, ago=timedelta(hours=1))
    make_archived(replay_of=well, status="succeeded")
    make_archived(replay_of=badly, status="cancelled", attempts=1)
    if arguments == ["ids"]:
        arguments = [str(badly)]
    jobqueue("replay", *arguments, "--skip-replayed", "succeeded")
    assert replayed() == [badly]


def test_the_others_are_replayed_when_one_id_cannot_be() -> None:
    (id,) = make_archived()
    waiting, missing = jobs.add.enqueue(1), uuid4()
    with pytest.raises(CommandError) as refused:
        jobqueue("replay", str(missing), str(waiting.id), str(id))
    assert str(refused.value).splitlines() == [
        f"There is no job {missing}, neither queued nor archived. It may have been "
        "pruned, or the transaction that enqueued it was rolled back.",
        f"Job {waiting.id} is queued; only a job that is over can be replayed. Wait "
        "for it to end, or cancel it first.",
    ]
    assert replayed() == [None, id]


def test_of_many_wrong_ids_only_the_first_are_explained() -> None:
    lines = refusal(*(str(uuid4()) for _ in range(15))).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "… and 5 other ids."


def test_a_job_whose_type_is_gone_cannot_be_replayed() -> None:
    (id,) = make_archived(job_type_id="old.type")
    assert refusal(str(id)).startswith(f"Job {id}: There is no job type 'old.type'.")


def test_a_filter_takes_the_failed_jobs_that_match_and_no_others() -> None:
    (wanted,) = make_archived(error_class="ConnectionError")
    make_archived(status="succeeded")
    make_archived(status="expired")
    make_archived(job_type_id="tests.sample.write")
    make_archived(error_class="KeyError")
    make_archived(error_class="ConnectionError", ago=timedelta(hours=3))
    make_archived(error_class="ConnectionError", ago=timedelta(seconds=1))
    said = jobqueue(
        "replay",
        *("--status", "failed", "--type", "tests.sample.add"),
        *("--error", "ConnectionError", "--since", "2h", "--until", "1m"),
    )
    assert replayed() == [wanted]
    assert said.out == "1 job was replayed.\n"


def test_a_status_can_be_given_again() -> None:
    (failed,), (expired,) = make_archived(), make_archived(status="expired")
    make_archived(status="cancelled")
    jobqueue("replay", "--status", "failed", "--status", "expired", "--yes")
    assert set(replayed()) == {failed, expired}


def test_the_module_of_an_exception_may_be_left_out() -> None:
    full, plain = (make_archived(error_class=name)[0] for name in ("shop.Gone", "Gone"))
    make_archived(error_class="shop.NotGone")
    jobqueue("replay", "--error", "Gone", "--yes")
    assert set(replayed()) == {full, plain}


def test_a_limit_takes_the_oldest() -> None:
    new = make_archived(3)
    old = make_archived(2, ago=timedelta(hours=1))
    jobqueue("replay", "--status", "failed", "--limit", "3", "--yes")
    assert set(replayed()) == {*old, new[0]}


def test_a_filter_leaves_out_what_was_replayed_before() -> None:
    first, second = make_archived(2)
    jobqueue("replay", str(first))
    jobqueue("replay", "--status", "failed", "--yes")
    assert replayed() == [first, second]
    said = jobqueue("replay", "--status", "failed", "--yes")
    assert said.out == "0 jobs were replayed.\n"
    assert said.err == (
        "Of those that match, 2 jobs were replayed before; --again takes them, too.\n"
    )


def test_a_replay_that_failed_again_stands_for_the_first() -> None:
    (first,) = make_archived(ago=timedelta(hours=1))
    (second,) = make_archived(replay_of=first, attempts=1)
    jobqueue("replay", "--status", "failed", "--yes")
    assert replayed() == [second]


def test_a_replay_that_never_ran_stands_for_nothing() -> None:
    (first,) = make_archived(ago=timedelta(hours=1))
    make_archived(replay_of=first, status="cancelled")
    jobqueue("replay", "--status", "failed", "--yes")
    assert replayed() == [first]


def test_again_takes_also_what_was_replayed_before() -> None:
    first, second = make_archived(2)
    jobqueue("replay", str(first))
    jobqueue("replay", "--status", "failed", "--again", "--yes")
    assert sorted(replayed()) == sorted([first, first, second])


def test_new_jobs_can_wait_and_go_to_another_queue_with_another_priority() -> None:
    (id,) = make_archived()
    jobqueue(
        *("replay", str(id), "--run-after", "1h"),
        *("--queue", "night", "--priority", "-5"),
    )
    (job,) = queued()
    assert (job.queue, job.priority) == ("night", -5)
    waits = job.run_after - timezone.now()
    assert timedelta(minutes=59) < waits < timedelta(minutes=61)


def test_a_replay_has_the_same_time_to_live_unless_another_one_is_chosen() -> None:
    now = timezone.now()
    (id,) = make_archived(
        created_at=now - timedelta(hours=3), expires_at=now - timedelta(hours=2)
    )
    kept = jobqueue("replay", str(id), "--expires", "keep")
    assert kept.err == (
        "1 job will expire again at once; say --expires same or --expires never if "
        "that is not wanted.\n"
    )
    assert jobqueue("replay", str(id), "--again").err == ""
    assert jobqueue("replay", str(id), "--again", "--expires", "same").err == ""
    assert jobqueue("replay", str(id), "--again", "--expires", "never").err == ""
    keep, same, chosen, never = (job.expires_at for job in queued())
    assert keep == now - timedelta(hours=2)
    for moment in (same, chosen):
        assert timedelta(minutes=59) < moment - timezone.now() < timedelta(minutes=61)
    assert never is None


def test_a_dry_run_counts_shows_examples_and_changes_nothing() -> None:
    ids = make_archived(7, error_class="shop.errors.Gone")
    said = jobqueue("replay", "--status", "failed", "--dry-run")
    lines = said.out.splitlines()
    assert lines[0] == "7 jobs would be replayed."
    assert lines[1] == "For example:"
    assert lines[2].split() == ["Job", "Job", "type", "Ended", "ago", "Outcome"]
    assert [line.split()[0] for line in lines[3:]] == [str(id) for id in ids[:5]]
    assert lines[3].split()[-1] == "shop.errors.Gone"
    assert not QueuedJob.objects.exists()


def test_the_examples_are_jobs_that_would_be_replayed() -> None:
    before = make_archived(7, ago=timedelta(hours=1))
    fresh = make_archived(2)
    jobqueue("replay", *map(str, before), "--yes")
    said = jobqueue("replay", "--status", "failed", "--dry-run")
    lines = said.out.splitlines()
    assert lines[0] == "2 jobs would be replayed."
    assert [line.split()[0] for line in lines[3:]] == [str(id) for id in fresh]


def test_a_dry_run_minds_the_limit_and_wrong_ids() -> None:
    (id, *_) = make_archived(3)
    said = jobqueue("replay", "--status", "failed", "--limit", "2", "--dry-run")
    assert said.out.startswith("2 jobs would be replayed.")
    assert len(said.out.splitlines()) == 5
    missing = uuid4()
    assert refusal("--dry-run", str(id), str(missing)).startswith(
        f"There is no job {missing}"
    )


def test_more_than_one_needs_a_confirmation() -> None:
    make_archived(2)
    assert refusal("--status", "failed") == (
        "2 jobs would be replayed. More than one needs a confirmation: say --yes. "
        "--dry-run shows what it would be."
    )


@pytest.mark.parametrize("flag", ["--yes", "-y", "--no-input", "--noinput"])
def test_a_flag_confirms(flag: str) -> None:
    make_archived(101)
    said = jobqueue("replay", "--status", "failed", flag)
    assert len(queued()) == 101
    assert said.out == "101 jobs were replayed.\n"


def test_one_job_needs_none() -> None:
    make_archived()
    jobqueue("replay", "--status", "failed")
    assert len(queued()) == 1


def test_somebody_at_a_terminal_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    make_archived(101)
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert refusal("--status", "failed") == "Nothing was replayed."
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    said = jobqueue("replay", "--status", "failed")
    assert said.err == "101 jobs will be replayed. Go on? [y/N] "
    assert said.out == "101 jobs were replayed.\n"
    assert len(queued()) == 101


def test_a_filter_is_a_bulk_operation_that_the_command_works_off(
    operated: list[dict[str, Any]],
) -> None:
    ids = make_archived(2_500)
    stream = Terminal()
    said = jobqueue("replay", "--status", "failed", "--yes", stdout=stream)
    assert sorted(replayed()) == sorted(ids)
    row = BulkOperation.objects.get()
    assert (row.state, row.changed, row.job_id) == ("done", 2_500, None)
    assert {job.bulk_operation_id for job in queued()} == {row.id}
    assert [(told["verb"], told["count"]) for told in operated] == [
        ("start bulk replay", 2_500),
        ("end bulk replay", 2_500),
    ]
    assert {told["by"] for told in operated} == {f"command line ({getpass.getuser()})"}
    assert said.out.endswith("2,500 jobs were replayed.\n")


@needs_rich
def test_a_bar_shows_how_far_it_is() -> None:
    make_archived(2_500)
    said = jobqueue("replay", "--status", "failed", "--yes", stdout=Terminal())
    assert "500 / 2,500  20.0 %" in said.out
    assert said.out.endswith("\x1b[2K2,500 jobs were replayed.\n")


@pytest.mark.parametrize(
    "arguments",
    [["--dry-run"], ["--status", "expired"], ["--priority", "101"], ["--until", "1h"]],
)
def test_a_draft_that_is_not_started_leaves_nothing_behind(
    arguments: list[str],
) -> None:
    make_archived(101)
    with suppress(CommandError, InvalidArguments):
        jobqueue("replay", "--status", "failed", *arguments)
    assert not BulkOperation.objects.exists()


def test_an_operation_that_an_operator_stops_meanwhile_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_archived(600)

    def stop_after_a_chunk(id: UUID) -> Iterator[Chunk]:
        steps = bulk_steps.work_here(id)
        yield next(steps)
        operations.bulk.stop(id)
        yield from steps

    monkeypatch.setattr(by_filter, "work_here", stop_after_a_chunk)
    with pytest.raises(CommandError) as refused:
        jobqueue("replay", "--status", "failed", "--yes")
    row = BulkOperation.objects.get()
    assert str(refused.value) == (
        f"Bulk operation {row.id} is stopped by now. 500 jobs were replayed."
    )
    assert len(queued()) == 500


def test_jobs_that_ended_in_the_same_moment_are_all_replayed() -> None:
    ids = make_archived(1_500)
    ArchivedJob.objects.update(finished_at=timezone.now() - timedelta(minutes=1))
    jobqueue("replay", "--status", "failed", "--yes")
    assert sorted(replayed()) == sorted(ids)


def test_a_run_that_was_interrupted_says_how_far_it_came_and_can_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = make_archived(2_500)

    def interrupt(id: UUID) -> Iterator[Chunk]:
        for chunk in bulk_steps.work_here(id):
            os.kill(os.getpid(), signal.SIGINT)
            yield chunk

    with monkeypatch.context() as patched:
        patched.setattr(by_filter, "work_here", interrupt)
        with pytest.raises(CommandError) as refused:
            jobqueue("replay", "--status", "failed", "--yes")
    row = BulkOperation.objects.get()
    assert str(refused.value) == (
        "Interrupted. 500 jobs were replayed. Workers do the others: to end that, "
        f"write jobqueue operations stop {row.id}"
    )
    assert refused.value.returncode == batches.INTERRUPTED == 130
    assert len(queued(job_type="tests.sample.add")) == 500
    assert (row.state, row.job_id) == ("queued", queued(job_type="jobqueue.bulk")[0].id)
    jobqueue("operations", "stop", str(row.id))
    jobqueue("replay", "--status", "failed", "--yes")
    replays = queued(job_type="tests.sample.add")
    assert sorted(job.replay_of for job in replays) == sorted(ids)


def test_matching_jobs_whose_type_is_gone_are_counted_apart() -> None:
    make_archived(2, job_type_id="old.type")
    make_archived()
    said = jobqueue("replay", "--status", "failed", "--dry-run")
    assert said.out.startswith("1 job would be replayed.")
    assert said.err == "2 more jobs cannot be replayed, because the job type is gone.\n"


def test_a_filter_leaves_out_jobs_of_at_most_once_types_unless_they_are_wanted() -> (
    None
):
    (once,) = make_archived(job_type_id="tests.sample.write_once")
    (other,) = make_archived()
    said = jobqueue("replay", "--status", "failed", "--yes")
    assert replayed() == [other]
    left_out = "1 job was skipped: of an at-most-once type; "
    assert said.err == f"{left_out}--at-most-once takes them, too.\n"
    said = jobqueue("replay", "--status", "failed", "--yes")
    assert "Of those that match, 1 job was replayed before" in said.err
    jobqueue("replay", "--status", "failed", "--at-most-once", "--yes")
    assert replayed() == [other, once]


def test_by_id_a_job_of_an_at_most_once_type_is_left_out_unless_it_is_wanted() -> None:
    (once,) = make_archived(job_type_id="tests.sample.write_once")
    assert refusal(str(once)) == (
        f"Job {once} is of an at-most-once type, and may have run; --at-most-once "
        "replays it."
    )
    jobqueue("replay", str(once), "--at-most-once")
    assert replayed() == [once]


def test_an_unknown_type_is_answered_with_the_nearest() -> None:
    assert "Did you mean 'tests.sample.add'" in refusal("--type", "tests.sample.addd")


def test_with_verbosity_0_only_what_was_asked_for_is_printed() -> None:
    (id,) = make_archived(expires_at=timezone.now() - timedelta(hours=1))
    said = jobqueue("replay", "--status", "failed", verbosity=0)
    assert (said.out, said.err) == ("", "")
    (job,) = queued()
    said = jobqueue("replay", str(id), "--again", verbosity=0)
    assert said.out.startswith(f"{id} was replayed as ")


def test_a_job_type_s_own_row_is_enough() -> None:
    JobType.objects.create(name="elsewhere.report")
    (id,) = make_archived(job_type_id="elsewhere.report")
    jobqueue("replay", "--type", "elsewhere.report", "--yes")
    assert replayed() == [id]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [],
            "Name jobs by id, or choose them by --where, --status, --type, --since, "
            "--until, --older-than, --error or --group.",
        ),
        (
            [str(uuid4()), "--type", "tests.sample.add"],
            "Name jobs by id or choose them by --where, --status, --type, --since, "
            "--until, --older-than, --error or --group, not both.",
        ),
        (
            [str(uuid4()), "--limit", "3"],
            "--limit goes with a filter, not with ids.",
        ),
        (["7"], "'7' is no job id: give it, or its first 6 or more digits."),
        (["--status", "fialed"], "argument --status: invalid choice: 'fialed'"),
        (["--status", "failed", "--limit", "0"], "must be a whole number of at least"),
        (["--status", "failed", "--limit", "x"], "of at least 1, not 'x'"),
        (["--since", "soon"], "--since: 'soon' is no time. Write a duration"),
        (["--until", "soon"], "--until: 'soon' is no time. Write a duration"),
        (["--since", "1h", "--run-after", "x"], "--run-after: 'x' is no time."),
        (["--since", "1h", "--expires", "2h"], "argument --expires: invalid choice"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason(
    arguments: list[str], message: str
) -> None:
    assert message in refusal(*arguments)


def test_a_queue_that_cannot_be_is_refused() -> None:
    (id,) = make_archived()
    assert refusal(str(id), "--queue", "a,b").startswith("queue must have no space")


def test_a_new_queue_that_nobody_names_gets_a_remark() -> None:
    (id,) = make_archived()
    said = jobqueue("replay", str(id), "--queue", "defualt")
    assert said.err == (
        "No job type, worker or job names the queue 'defualt'. Did you mean "
        "'default'?\n"
    )
    assert f"{id} was replayed as " in said.out


def test_a_worker_that_does_the_others_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_archived(700)

    def let_another_go_on(id: UUID) -> Iterator[Any]:
        yield next(bulk_steps.work_here(id))
        assert operations.bulk.resume(id)
        list(bulk_steps.work_here(id))

    monkeypatch.setattr(by_filter, "work_here", let_another_go_on)
    said = jobqueue("replay", "--status", "failed", "--yes")
    assert said.err == "A worker did the others.\n"
    assert said.out == "500 jobs were replayed.\n"
    assert QueuedJob.objects.exclude(replay_of=None).count() == 700
