"""``jobqueue failures``: groups, and what is decided about them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from django_jobqueue.management.jobqueue.failures import Failures
from django_jobqueue.models import BulkOperation, Failure, FailureGroup, QueuedJob
from django_jobqueue.text.redaction import MASK
from django_jobqueue.verbs.failure_groups import VERBS
from tests.admin import scene
from tests.commands.conftest import (
    Terminal,
    jobqueue,
    make_archived,
    not_refused,
    refusal,
)
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived

pytestmark = pytest.mark.django_db
ONE, TWO = UUID("5f1c9a04" + "0" * 24), UUID("5f1c9a04" + "1" * 24)
OTHER = UUID("abcd" + "0" * 28)


def group(key: UUID = ONE, **columns: Any) -> FailureGroup:
    values = {
        "coarse": key,
        "error_class": "ValueError",
        "frame": "shop.jobs:send",
        "template": "no stock of <n>",
        **columns,
    }
    return FailureGroup.objects.create(fingerprint=key, **values)


def listed(flags: str = "") -> list[str]:
    found = jobqueue(f"failures {flags} --format json").json
    return [one["fingerprint"] for one in found]


def test_groups_are_listed_the_latest_first() -> None:
    assert jobqueue("failures").out == "No failure groups.\n"
    assert listed() == []
    now = timezone.now()
    group(ONE, last_seen=now - timedelta(hours=3))
    late = now - timedelta(seconds=42)
    group(OTHER, last_seen=late, error_class="shop.errors.OutOfStock")
    make_archived(3, fingerprint=ONE)
    heading, first, second = jobqueue("failures list").out.splitlines()
    assert heading.split()[:4] == ["Group", "State", "Jobs", "Waiting"]
    assert first.split()[:4] == ["abcd0000", "open", "0", "0"]
    assert second.split()[:6] == ["5f1c9a04", "open", "3", "0", "3", "h"]
    assert "no stock of <n>" in second
    words = set(re.findall(r"\w+", Failures.json))
    _, one = jobqueue("failures --format json").json
    assert set(one) <= words
    shown = jobqueue(f"failures show {ONE} --format json").json
    assert set(one) < set(shown) <= words
    assert shown["newest"] is None


NOW = timezone.now()
STATES: dict[str, dict[str, Any]] = {
    "open": {},
    "regressed": {"regressed_at": NOW},
    "resolved": {"state": "resolved", "resolved_in": "r7"},
    "ignored": {"state": "ignored", "ignored_until": NOW + timedelta(days=9)},
    "ignored for good": {"state": "ignored"},
    "no longer ignored": {"state": "ignored", "ignored_until": NOW - timedelta(1)},
}


def test_groups_are_listed_by_their_state_at_this_moment() -> None:
    names = {}
    for number, (name, columns) in enumerate(STATES.items()):
        names[str(group(UUID(int=number), **columns).pk)] = name
    for flags, states in (
        ("", {"open", "regressed", "no longer ignored"}),
        ("--state open", {"open", "regressed", "no longer ignored"}),
        ("--state regressed", {"regressed"}),
        ("--state resolved", {"resolved"}),
        ("--state ignored", {"ignored", "ignored for good"}),
        ("--state all", {*STATES}),
    ):
        assert {names[key] for key in listed(flags)} == states
        assert len(listed(f"{flags} --limit 1")) == 1


@pytest.mark.django_db(transaction=True)
def test_one_group_is_shown_with_its_newest_failure(worker: HandDriven) -> None:
    jobs.fail_with.enqueue("lookup")
    jobs.fail.using(queue="mail").enqueue("password=hunter2")
    worker.work()
    found = FailureGroup.objects.get(error_class="ValueError")
    text = jobqueue(f"failures show {found.pk.hex[:8]}").out
    assert text.startswith(f"Failure group  {found.pk}\nState          open\n")
    assert "Archived jobs  1\n" in text
    assert "Job types      tests.sample.fail\n" in text
    assert "    3  tests.sample.fail  mail  " in text
    assert f"ValueError: password={MASK}" in text
    Failure.objects.update(traceback="Bearer abcdefghijkl\n\x1b[31m")
    text = jobqueue(f"failures show {found.pk}").out
    assert "abcdefghijkl" not in text
    assert "\x1b" not in text


def test_a_group_is_named_by_the_beginning_of_its_fingerprint() -> None:
    group(ONE)
    group(TWO)
    for name in (str(ONE), ONE.hex, "5f1c9a040", "5F1C9A04-00"):
        said = jobqueue(f"failures resolve {name}")
        assert said.out == "1 failure group was resolved.\n"
        assert FailureGroup.objects.get(state="resolved").pk == ONE
        FailureGroup.objects.update(state="open")


DECISIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "resolve": ("--in-release r7", "open", {"resolved_in": "r7"}),
    "ignore": ("--until 2h", "open", {"ignored_until__isnull": False}),
    "reopen": ("", "resolved", {"state": "open"}),
    "assign": ("--to carl", "open", {"assignee": "carl"}),
    "note": ("--text 'the bank'", "open", {"notes__contains": "the bank"}),
}


def test_a_decision_is_written_and_told(operated: list[dict[str, Any]]) -> None:
    for verb, (flags, before, after) in DECISIONS.items():
        operated.clear()
        for names, count, were in (
            (f"{ONE} {ONE}", 1, "group was"),
            (f"{ONE} abcd ABCD", 2, "groups were"),
        ):
            FailureGroup.objects.all().delete()
            for key in (ONE, OTHER):
                group(key, state=before)
            said = jobqueue(f"failures {flags} {verb} {names}")
            assert said.out == f"{count} failure {were} {VERBS[verb].done}.\n"
            assert FailureGroup.objects.filter(**after).count() == count
        assert [(one["verb"], one["count"]) for one in operated] == [
            (f"{verb} failures", 1),
            (f"{verb} failures", 2),
        ]
        found = jobqueue(f"failures {verb} {flags} {ONE} --format json").json
        assert [entry["fingerprint"] for entry in found] == [str(ONE)]


def test_what_makes_no_sense_is_refused_and_decides_nothing() -> None:
    for key in (ONE, TWO, OTHER):
        group(key)
    reasons = {
        "resolv 5f1c": "failures has no verb 'resolv'. Did you mean 'resolve'?",
        "5f1c9a04": "failures has no verb '5f1c9a04'. Its verbs are list, show, re",
        "list 5f1c9a04": "list takes no name. Did you mean 'show 5f1c9a04'?",
        "resolve": "Name the groups to resolve by their fingerprints.",
        "show 5f1c9a04 abcd": "Several failure groups begin with '5f1c9a04',",
        f"show {str(ONE)} abcd": "show shows one failure group.",
        "resolve 5f1": "'5f1' is not a fingerprint: give it, or its first 4 or mor",
        "resolve xyz12": "'xyz12' is not a fingerprint",
        f"resolve {'0' * 33}": f"'{'0' * 33}' is not a fingerprint",
        "resolve ffff": "There is no failure group 'ffff'.",
        f"resolve {str(ONE)} ffff": "There is no failure group 'ffff'.",
        "ignore abcd --until 2020-01-01": "--until: 2020-01-01 00:00:00 is past.",
        "ignore abcd --until soon": "--until: 'soon' is not a time. Write a ",
        "ignore abcd --in-release r": "--in-release goes with resolve al",
        "resolve abcd --limit 1": "--limit goes with list alone.",
        f"resolve abcd --in-release {'r' * 101}": "in_release must not be long",
        "assign abcd": "Say who: --to.",
        "note abcd": "Say what: --text.",
        "note abcd --text ' '": "A note needs a text.",
        "resolve abcd --again": "--again goes with replay alone.",
        "cancel abcd --expires never": "--expires goes with replay alone.",
        "list --dry-run": "--dry-run goes with replay and cancel and prune al",
        "replay abcd --reason x": "--reason goes with cancel alone.",
        f"replay abcd {str(ONE)} --resolve": "--resolve goes with one failure group.",
    }
    assert not_refused("failures", reasons) == {}
    assert not FailureGroup.objects.exclude(changed_at=None).exists()


JOBS: dict[str, tuple[str, str]] = {
    "replay": ("replayed", "archived"),
    "cancel": ("cancelled", "queued"),
    "prune": ("deleted", "archived"),
}


def jobs_of(count: int, table: str, key: UUID) -> set[str]:
    if table == "archived":
        make_archived()
        return {str(*make_archived(fingerprint=key)) for _ in range(count)}
    scene.queued()
    ids = [scene.queued(attempts=1) for _ in range(count)]
    for id in ids:
        Failure.objects.create(
            job_id=id, number=1, job_type="tests.sample.add", fingerprint=key
        )
    return set(map(str, ids))


@pytest.mark.parametrize("verb", JOBS)
def test_the_jobs_of_groups_are_changed_as_in_the_admin(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, table = JOBS[verb]
    group(ONE)
    group(OTHER)
    both = f"failures {verb} 5f1c9a04 abcd"
    assert jobqueue(f"{both} --yes").out == f"0 jobs were {done}.\n"
    assert not BulkOperation.objects.exists()
    chosen = jobs_of(2, table, ONE) | jobs_of(1, table, OTHER)

    dry = jobqueue(f"{both} --dry-run --format json").json
    assert (dry["verb"], dry["count"], dry["dry_run"]) == (verb, 3, True)
    assert set(dry["ids"]) <= chosen
    said = jobqueue(f"{both} --dry-run").out
    assert said.startswith(f"3 jobs would be {done}.\n")
    assert "More than one needs confirmation" in refusal(both)
    monkeypatch.setattr("sys.stdin", Terminal("no\n"))
    assert f"Nothing was {done}" in refusal(both)
    assert not BulkOperation.objects.exists()

    assert jobqueue(f"{both} --yes").out == f"3 jobs were {done}.\n"
    assert BulkOperation.objects.get(kind=verb).state == "done"
    changed = {
        "replay": {str(job.replay_of) for job in QueuedJob.objects.all()},
        "cancel": {str(job.pk) for job in archived(status="cancelled")},
        "prune": chosen - {str(job.pk) for job in archived()},
    }
    assert changed[verb] == chosen
    again = jobqueue(f"{both} --yes --format json").json
    assert (again["count"], again["dry_run"]) == (0, False)


def test_a_group_is_resolved_when_its_replay_starts() -> None:
    group()
    said = jobqueue("failures replay 5f1c --resolve")
    assert said.err.endswith(
        "The group is not resolved, because no job was replayed.\n"
    )
    make_archived(2, fingerprint=ONE)
    jobqueue("failures replay 5f1c --resolve --dry-run")
    assert FailureGroup.objects.get().state == "open"
    said = jobqueue("failures replay 5f1c --resolve --yes")
    assert (said.out, said.err) == ("2 jobs were replayed.\n", "")
    assert FailureGroup.objects.get().state == "resolved"
    said = jobqueue("failures replay 5f1c --yes")
    assert said.err.endswith("; --again takes them, too.\n")
    flags = "--again --queue mail --priority 7 --yes"
    assert jobqueue(f"failures replay 5f1c {flags}").out.startswith("2 ")
    assert QueuedJob.objects.filter(queue="mail", priority=7).count() == 2


def test_to_reopen_an_open_group_says_that_it_was_open() -> None:
    group(ONE, state="resolved")
    group(OTHER)
    said = jobqueue(f"failures reopen {ONE} {OTHER}")
    assert said.out == "1 failure group was reopened.\n"
    assert said.err == f"Failure group {OTHER} was open already.\n"
    said = jobqueue(f"failures reopen {ONE}")
    assert said.out == ""
    assert said.err == f"Failure group {ONE} was open already.\n"
