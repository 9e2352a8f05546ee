"""What people decide about failure groups, and what is told of it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.models import FailureGroup
from django_jobqueue.store.control import failure_groups
from tests.sample import jobs
from tests.store.rows import ago, register
from tests.support.hand_driven import HandDriven
from tests.support.tables import differing, refusal

Told = list[dict[str, Any]]

pytestmark = pytest.mark.django_db


def group(**columns: Any) -> UUID:
    """Insert a group; returns its fingerprint."""
    fingerprint = uuid4()
    FailureGroup.objects.create(
        fingerprint=fingerprint, coarse=fingerprint, error_class="ValueError", **columns
    )
    return fingerprint


def held(fingerprint: UUID) -> FailureGroup:
    """The group with this fingerprint."""
    return FailureGroup.objects.get(fingerprint=fingerprint)


def test_resolved_groups_say_when_and_by_whom(operated: Told) -> None:
    one, other, third = group(), group(regressed_at=ago(60)), group()
    before = timezone.now()
    changed = operations.resolve([one, str(other), uuid4()], by="anna")
    assert set(changed) == {one, other}
    for fingerprint in changed:
        row = held(fingerprint)
        assert (row.state, row.regressed_at) == ("resolved", None)
        assert row.resolved_at is not None
        assert row.changed_at is not None
        assert before <= row.resolved_at <= timezone.now()
        assert row.changed_by == "anna"
        assert (row.resolved_in, row.excused) == ("", [])
    assert held(third).state == "open"
    (told,) = operated
    assert (told["verb"], told["by"], told["count"]) == ("resolve failures", "anna", 2)
    assert told["details"]["fingerprints"] == sorted(map(str, changed))


def test_resolved_in_a_release_excuses_the_others_that_run(own: Any) -> None:
    register(own, release="r1")
    register(own, release="r2")
    register(own, release="")
    ended = register(own, release="r0")
    own.run(
        "UPDATE jobqueue_worker SET state = 'stopped' WHERE id = %(id)s", {"id": ended}
    )
    fingerprint = group()
    operations.resolve([fingerprint], in_release="r2")
    row = held(fingerprint)
    assert (row.resolved_in, row.excused) == ("r2", ["r1"])
    operations.resolve([fingerprint])
    row = held(fingerprint)
    assert (row.resolved_in, row.excused) == ("", [])


def test_a_group_that_regressed_unseen_is_left_as_it_is() -> None:
    fresh, known = group(regressed_at=ago(5)), group(regressed_at=ago(60))
    for verb in (operations.ignore, operations.resolve):
        assert verb([fresh, known], seen=ago(30)) == [known]
        row = held(fresh)
        assert (row.state, row.regressed_at is not None) == ("open", True)


def test_groups_are_ignored_until_a_moment_or_for_good() -> None:
    fingerprint, until = group(), timezone.now() + timedelta(hours=1)
    operations.ignore([fingerprint], until=until)
    row = held(fingerprint)
    assert (row.state, row.ignored_until) == ("ignored", until)
    operations.ignore([fingerprint])
    assert held(fingerprint).ignored_until is None


def test_what_was_decided_can_be_taken_back() -> None:
    decided = {"resolved_at": ago(60), "resolved_in": "r1", "excused": ["r0"]}
    for state in ("resolved", "ignored"):
        fingerprint = group(state=state, ignored_until=ago(-60), **decided)
        assert operations.reopen([fingerprint]) == [fingerprint]
        row = held(fingerprint)
        assert (row.state, row.resolved_at, row.resolved_in) == ("open", None, "")
        assert (row.excused, row.ignored_until) == ([], None)
        assert operations.reopen([fingerprint]) == []


def test_groups_are_somebodys_or_nobodys() -> None:
    one, other = group(), group(assignee="bert")
    assert operations.assign([one, other], "bert") == [one]
    assert set(operations.assign([one, other], "")) == {one, other}
    assert held(one).assignee == held(other).assignee == ""


def test_notes_stand_above_the_older_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    fingerprint = group()
    operations.note([fingerprint], "It is the gateway.", by="anna")
    operations.note([fingerprint], "Reported as OPS-12.", by="bert")
    newest, older = held(fingerprint).notes.split("\n\n")
    assert newest.endswith(" UTC bert\nReported as OPS-12.")
    assert older.endswith(" UTC anna\nIt is the gateway.")
    monkeypatch.setattr(failure_groups, "NOTES_LENGTH", 60)
    operations.note([fingerprint], "new", by="anna")
    notes = held(fingerprint).notes
    assert len(notes) == 60
    assert f" UTC anna\nnew\n\n{newest[:20]}" in notes


def test_what_cannot_be_is_refused() -> None:
    today: Any = timezone.now().date()
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: operations.resolve(["x"]), "not a fingerprint"),
        (lambda: operations.resolve([], in_release="x" * 101), "longer than 100"),
        (lambda: operations.ignore([], until=today), "until"),
        (lambda: operations.assign([], "x" * 1_001), "longer than 1,000"),
        (lambda: operations.note([], "x" * 5_001), "longer than 5,000"),
        (lambda: operations.note([], " \n"), "needs a text"),
    ]
    ask = partial(refusal, InvalidArguments)
    assert differing(calls, ask, operator.contains) == []


def test_a_fix_that_is_not_deployed_yet_is_no_regression(worker: HandDriven) -> None:
    """Through a real worker, whose release is ``tests``."""

    def fail() -> str:
        jobs.fail.enqueue(message="no")
        worker.work()
        return str(FailureGroup.objects.get().state)

    assert fail() == "open"
    fingerprint = FailureGroup.objects.get().fingerprint
    operations.resolve([fingerprint], in_release="tests-2")
    assert fail() == "resolved"
    operations.resolve([fingerprint], in_release="tests")
    assert fail() == "open"
    assert held(fingerprint).regressed_at is not None
    operations.ignore([fingerprint])
    assert fail() == "ignored"
