"""``jobqueue prune``."""

from __future__ import annotations

import signal
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.management.base import CommandError
from django.test import override_settings

from django_jobqueue.management.jobqueue import batches
from django_jobqueue.models import ArchivedJob, Failure, JobType
from tests.commands.conftest import Manage, Terminal, jobqueue, make_archived
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
KEPT = ("succeeded", "failed", "expired", "cancelled")


def left() -> set[UUID]:
    """The archived jobs that are there."""
    return set(ArchivedJob.objects.values_list("id", flat=True))


def refusal(*arguments: str) -> str:
    """What the command says when it refuses; nothing may have been pruned."""
    before = left()
    with pytest.raises(CommandError) as refused:
        jobqueue("prune", *arguments)
    assert left() == before
    return str(refused.value)


@override_settings(JOBQUEUE={"RETENTION": {"succeeded": 3 * 86_400, "failed": None}})
def test_without_options_the_retention_in_force_decides() -> None:
    make_archived(2, status="succeeded", ago=4 * DAY)
    young = make_archived(status="succeeded", ago=2 * DAY)
    kept = make_archived(status="failed", ago=4_000 * DAY)
    make_archived(status="expired", ago=31 * DAY)
    said = jobqueue("prune")
    assert left() == {*young, *kept}
    assert [line.split() for line in said.out.splitlines()] == [
        ["Status", "Job", "type", "Older", "than", "Pruned"],
        ["succeeded", "every", "3", "d", "2"],
        ["expired", "every", "30", "d", "1"],
        ["cancelled", "every", "30", "d", "0"],
        ["3", "archived", "jobs", "were", "pruned."],
    ]


def test_a_job_type_s_own_retention_is_a_rule_of_its_own() -> None:
    JobType.objects.filter(name="tests.sample.add").update(keep_succeeded_override=DAY)
    make_archived(status="succeeded", ago=2 * DAY)
    other = make_archived(
        status="succeeded", ago=2 * DAY, job_type_id="tests.sample.say"
    )
    said = jobqueue("prune", "--status", "succeeded")
    assert left() == set(other)
    assert [line.split() for line in said.out.splitlines()[1:]] == [
        ["succeeded", "tests.sample.add", "1", "d", "1"],
        ["succeeded", "every", "other", "7", "d", "0"],
        ["1", "archived", "job", "was", "pruned."],
    ]


def test_the_records_of_failures_go_with_their_job() -> None:
    old, young = make_archived(ago=100 * DAY), make_archived()
    for (id,) in (old, young):
        Failure.objects.create(
            job_id=id, job_type="tests.sample.add", number=1, end="failed"
        )
    jobqueue("prune")
    assert [failure.job_id for failure in Failure.objects.all()] == young


def test_status_age_and_type_can_be_given_instead() -> None:
    (gone,) = make_archived(status="failed", ago=2 * DAY)
    kept = {
        *make_archived(status="failed", ago=timedelta(hours=3)),
        *make_archived(status="succeeded", ago=2 * DAY),
        *make_archived(status="failed", ago=2 * DAY, job_type_id="tests.sample.say"),
    }
    assert left() == {gone, *kept}
    jobqueue(
        "prune",
        *("--status", "failed", "--older-than", "1d", "--type", "tests.sample.add"),
    )
    assert left() == kept


def test_a_status_can_be_given_again() -> None:
    make_archived(status="failed")
    make_archived(status="expired")
    kept = make_archived(status="cancelled")
    jobqueue("prune", "--status", "failed", "--status", "expired", "--older-than", "0")
    assert left() == set(kept)


def test_an_age_without_a_status_holds_for_every_status() -> None:
    for status in ("succeeded", "failed", "expired", "cancelled"):
        make_archived(status=status, ago=2 * DAY)
    young = make_archived()
    jobqueue("prune", "--older-than", "1d")
    assert left() == set(young)


def test_a_dry_run_counts_by_rule_and_changes_nothing() -> None:
    make_archived(3, status="succeeded", ago=10 * DAY)
    make_archived(2, status="failed", ago=100 * DAY)
    said = jobqueue("prune", "--dry-run")
    assert [line.split() for line in said.out.splitlines()] == [
        ["Status", "Job", "type", "Older", "than", "Would", "be", "pruned"],
        ["succeeded", "every", "7", "d", "3"],
        ["failed", "every", "90", "d", "2"],
        ["expired", "every", "30", "d", "0"],
        ["cancelled", "every", "30", "d", "0"],
        ["5", "archived", "jobs", "would", "be", "pruned."],
    ]
    assert len(left()) == 5


@override_settings(JOBQUEUE={"RETENTION": {"failed": None}})
def test_where_the_retention_keeps_all_it_says_so() -> None:
    make_archived(ago=4_000 * DAY)
    said = jobqueue("prune", "--status", "failed")
    assert said.out == "The retention keeps all of these jobs; nothing to prune.\n"
    assert len(left()) == 1


def test_several_batches_are_pruned_beside_what_is_kept() -> None:
    make_archived(2_300, ago=100 * DAY)
    kept = make_archived(1_200, status="succeeded", ago=100 * DAY)
    stream = Terminal()
    said = jobqueue("prune", "--status", "failed", stdout=stream)
    assert left() == set(kept)
    assert said.out.splitlines()[-1] == "2,300 archived jobs were pruned."


def test_there_is_no_bar_in_a_file_and_with_verbosity_0_nothing() -> None:
    make_archived(2, ago=100 * DAY)
    assert "\r" not in jobqueue("prune").out
    make_archived(2, ago=100 * DAY)
    assert jobqueue("prune", verbosity=0, stdout=Terminal()).out == ""
    assert left() == set()


def test_somebody_at_a_terminal_is_asked_before_many_are_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_archived(101, ago=100 * DAY)
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert refusal() == "Nothing was pruned."
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    said = jobqueue("prune")
    assert said.err == "101 archived jobs will be deleted. Go on? [y/N] "
    assert left() == set()


@pytest.mark.parametrize(("count", "flags"), [(1, []), (101, ["--yes"])])
def test_nobody_is_asked_about_one_or_with_yes(
    monkeypatch: pytest.MonkeyPatch, count: int, flags: list[str]
) -> None:
    make_archived(count, ago=100 * DAY)
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert jobqueue("prune", *flags).err == ""
    assert left() == set()


def test_it_rests_between_batches_and_an_interrupt_then_says_how_far_it_came(
    monkeypatch: pytest.MonkeyPatch, operated: list[dict[str, Any]]
) -> None:
    make_archived(2_500, ago=100 * DAY)
    rests: list[float] = []

    def rest(seconds: float) -> None:
        rests.append(seconds)
        if len(rests) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(batches, "sleep", rest)
    with pytest.raises(CommandError) as refused:
        jobqueue("prune", "--status", "failed", "--batch-pause", "1m")

    assert str(refused.value) == "Interrupted. 2,000 archived jobs were pruned."
    assert refused.value.returncode == 130
    assert rests == [60, 60]
    assert len(left()) == 500
    assert [(told["verb"], told["count"]) for told in operated] == [("prune", 2_000)]


@pytest.mark.django_db(transaction=True)
def test_ctrl_c_ends_it_with_what_was_pruned_until_then(manage: Manage) -> None:
    make_archived(2_500, ago=100 * DAY)
    process = manage("jobqueue", "prune", "--batch-pause", "60")
    eventually(
        lambda: len(left()) == 1_500, within=90, what="the first batch to be pruned"
    )
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert out == ""
    assert err == "CommandError: Interrupted. 1,000 archived jobs were pruned.\n"
    assert process.returncode == 130
    assert len(left()) == 1_500


def test_the_archive_of_a_type_that_is_gone_can_be_pruned() -> None:
    make_archived(job_type_id="old.type", ago=100 * DAY)
    kept = make_archived(ago=100 * DAY)
    jobqueue("prune", "--type", "old.type")
    assert left() == set(kept)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--status", "queued"], "argument --status: invalid choice: 'queued'"),
        (["--older-than", "a month"], "--older-than: 'a month' is no duration. Write"),
        (["--older-than", "2020-01-01"], "--older-than: '2020-01-01' is no duration."),
        (["--batch-pause", "x"], "--batch-pause: 'x' is no duration. Write 30s"),
        (["--type", "tests.sample.ad"], "There is no job type 'tests.sample.ad'. Did"),
        (["failed"], "unrecognized arguments: failed"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason(
    arguments: list[str], message: str
) -> None:
    make_archived(ago=4_000 * DAY)
    assert message in refusal(*arguments)


@pytest.mark.parametrize(
    "chosen", [("--older-than", "1d"), ("--where", "status:succeeded")]
)
def test_programs_are_told_how_many_are_pruned(chosen: tuple[str, str]) -> None:
    make_archived(3, status="succeeded", ago=4 * DAY)
    tried = jobqueue("prune", *chosen, "--dry-run", "--format", "json").json
    assert (tried["verb"], tried["dry_run"], tried["count"]) == ("prune", True, 3)
    assert len(left()) == 3
    done = jobqueue("prune", *chosen, "--yes", "--format", "json").json
    assert (done["dry_run"], done["count"]) == (False, 3)
    assert not left()


def test_a_program_that_prunes_nothing_is_told_so() -> None:
    with override_settings(JOBQUEUE={"RETENTION": dict.fromkeys(KEPT)}):
        said = jobqueue("prune", "--format", "json").json
    assert said["count"] == 0
