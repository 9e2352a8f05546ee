"""``jobqueue prune``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.management.base import CommandError
from django.test import override_settings

from django_jobqueue.management.jobqueue import batches
from django_jobqueue.models import ArchivedJob, JobType
from django_jobqueue.store.control import prune
from tests.commands.conftest import (
    Said,
    Terminal,
    jobqueue,
    make_archived,
    not_refused,
    refusal,
)

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
OLD = 100 * DAY
KEPT = ("succeeded", "failed", "expired", "cancelled")


def left() -> set[UUID]:
    return set(ArchivedJob.objects.values_list("id", flat=True))


def cells(said: Said) -> list[list[str]]:
    return [line.split() for line in said.out.splitlines()]


@override_settings(JOBQUEUE={"RETENTION": {"succeeded": 3 * 86_400, "failed": None}})
def test_without_options_the_retention_in_force_decides() -> None:
    JobType.objects.filter(name="tests.sample.say").update(keep_succeeded_override=DAY)
    old = make_archived(2, status="succeeded", ago=4 * DAY)
    say = make_archived(status="succeeded", ago=2 * DAY, job_type_id="tests.sample.say")
    young = make_archived(status="succeeded", ago=2 * DAY)
    kept = make_archived(status="failed", ago=4_000 * DAY)
    expired = make_archived(status="expired", ago=31 * DAY)
    rules = [
        ["succeeded", "tests.sample.say", "1", "d", "1"],
        ["succeeded", "every", "other", "3", "d", "2"],
        ["expired", "every", "30", "d", "1"],
        ["cancelled", "every", "30", "d", "0"],
    ]
    heads = ["Status", "Job", "type", "Older", "than"]
    assert cells(jobqueue("prune --dry-run")) == [
        [*heads, "Would", "be", "pruned"],
        *rules,
        ["4", "archived", "jobs", "would", "be", "pruned."],
    ]
    assert left() == {*old, *say, *expired, *young, *kept}
    assert cells(jobqueue("prune")) == [
        [*heads, "Pruned"],
        *rules,
        ["4", "archived", "jobs", "were", "pruned."],
    ]
    assert left() == {*young, *kept}


def test_status_age_and_type_can_be_given_instead() -> None:
    make_archived(status="failed", ago=2 * DAY)
    young = make_archived(status="failed", ago=timedelta(hours=3))
    others = {
        *make_archived(status="succeeded", ago=2 * DAY),
        *make_archived(status="failed", ago=2 * DAY, job_type_id="tests.sample.say"),
    }
    jobqueue("prune --status failed --older-than 1d --type tests.sample.add")
    assert left() == {*young, *others}
    gone = make_archived(job_type_id="old.type", ago=OLD)
    jobqueue("prune --type old.type")  # the archive outlives its job types
    assert left() == {*young, *others} - {*gone}
    jobqueue("prune --older-than 1d --yes")
    assert left() == {*young}
    (last,) = make_archived(status="cancelled")
    make_archived(status="expired")
    jobqueue("prune --status failed --status expired --older-than 0")
    assert left() == {last}


def test_where_the_retention_keeps_all_it_says_so() -> None:
    make_archived(ago=4_000 * DAY)
    with override_settings(JOBQUEUE={"RETENTION": dict.fromkeys(KEPT)}):
        said = jobqueue("prune --status failed")
        assert jobqueue("prune --format json").json["count"] == 0
    assert said.out == "The retention keeps all of these jobs; nothing to prune.\n"
    assert len(left()) == 1


def test_several_batches_are_pruned_beside_what_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prune, "BATCH", 2)
    make_archived(5, ago=OLD)
    kept = make_archived(3, status="succeeded", ago=OLD)
    said = jobqueue("prune --status failed", stdout=Terminal())
    assert left() == set(kept)
    assert said.out.splitlines()[-1] == "5 archived jobs were pruned."
    make_archived(2, ago=OLD)
    assert "\r" not in jobqueue("prune --status failed").out
    assert jobqueue("prune", verbosity=0, stdout=Terminal()).out == ""
    assert left() == set()


def test_somebody_at_a_terminal_is_asked_before_many_are_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    for count, flags in ((1, ""), (2, "--yes")):  # nobody is asked
        make_archived(count, ago=OLD)
        assert jobqueue(f"prune {flags}").err == ""
        assert left() == set()
    make_archived(2, ago=OLD)
    assert refusal("prune") == "Nothing was pruned."
    assert len(left()) == 2
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert jobqueue("prune").err == "2 archived jobs will be deleted. Go on? [y/N] "
    assert left() == set()


def test_it_rests_between_batches_and_an_interrupt_then_says_how_far_it_came(
    monkeypatch: pytest.MonkeyPatch, operated: list[dict[str, Any]]
) -> None:
    monkeypatch.setattr(prune, "BATCH", 2)
    make_archived(5, ago=OLD)
    rests: list[float] = []

    def rest(seconds: float) -> None:
        rests.append(seconds)
        if len(rests) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(batches, "sleep", rest)
    with pytest.raises(CommandError) as refused:
        jobqueue("prune --status failed --batch-pause 1m")

    assert str(refused.value) == "Interrupted. 4 archived jobs were pruned."
    assert refused.value.returncode == 130
    assert rests == [60, 60]
    assert len(left()) == 1
    assert [(told["verb"], told["count"]) for told in operated] == [("prune", 4)]


def test_what_makes_no_sense_is_refused_with_a_reason() -> None:
    kept = make_archived(ago=4_000 * DAY)
    reasons = {
        "--status queued": "argument --status: invalid choice: 'queued'",
        "--older-than 'a month'": "--older-than: 'a month' is not a duration. Write",
        "--older-than 2020-01-01": "--older-than: '2020-01-01' is not a duration.",
        "--batch-pause x": "--batch-pause: 'x' is not a duration. Write 30s",
        "--type tests.sample.ad": "There is no job type 'tests.sample.ad'. Did",
        "failed": "unrecognized arguments: failed",
    }
    assert not_refused("prune", reasons) == {}
    assert left() == set(kept)


def test_programs_are_told_how_many_are_pruned() -> None:
    for chosen in ("--older-than 1d", "--where status:succeeded"):
        make_archived(3, status="succeeded", ago=4 * DAY)
        tried = jobqueue(f"prune {chosen} --dry-run --format json").json
        assert (tried["verb"], tried["dry_run"], tried["count"]) == ("prune", True, 3)
        assert len(left()) == 3
        done = jobqueue(f"prune {chosen} --yes --format json").json
        assert (done["dry_run"], done["count"]) == (False, 3)
        assert not left()
