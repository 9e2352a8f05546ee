"""Every way to replay has the same options, defaults and rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import pytest

from django_jobqueue import Job, operations
from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.operation_options import Options
from django_jobqueue.domain.policy import READABLE
from django_jobqueue.models import QueuedJob
from django_jobqueue.operations import replaying
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.store.bulk.skips import planned
from tests.sample import jobs
from tests.store.rows import ADD, ONCE, ago, archive

pytestmark = pytest.mark.django_db

KINDS = (ADD, ONCE, "shop.removed", ADD)


def test_replaying_many_leaves_out_what_a_bulk_replay_leaves_out() -> None:
    """Replayed already, of an at-most-once type, of a type that is gone: one rule."""
    before, once, gone, fresh = (archive(job_type) for job_type in KINDS)
    operations.replay_many([before])
    made = operations.replay_many([before, once, gone, fresh])
    assert set(made) == {fresh}
    assert made.left_out == {
        before: "replayed",
        once: "at_most_once",
        gone: "type_gone",
    }
    selection = Selection(Table.ARCHIVED, (Term("id", (before, once, gone, fresh)),))
    skipped = operations.bulk.draft("replay", selection)
    _, reasons = planned("replay", skipped.counted, skipped.options)
    assert reasons == {"replayed": 2, "at_most_once": 1, "type_gone": 1}
    options: dict[str, Any] = {"skip_replayed": "none", "skip_at_most_once": False}
    made = operations.replay_many([before, once, gone, fresh], **options)
    assert (set(made), made.left_out) == ({before, once, fresh}, {gone: "type_gone"})


def test_a_job_that_hardly_expires_keeps_no_other_from_being_replayed() -> None:
    """The same lifetime would end later than any moment may be."""
    latest = READABLE[1]
    far = archive(ADD, created_at=ago(9), expires_at=latest)
    near, never = archive(ADD), archive(ADD)
    made = operations.replay_many([near, far, never])
    assert set(made) == {near, far, never}
    assert QueuedJob.objects.get(replay_of=far).expires_at == latest
    assert QueuedJob.objects.get(replay_of=never).expires_at is None


def fresh(**options: Any) -> UUID:
    """A job that is due in a month, and then waits for an hour at most."""
    return jobs.add.using(**{"expires_in": HOUR, **DUE, **options}).enqueue(1).id


def moved(**columns: Any) -> UUID:
    QueuedJob.objects.filter(pk=(id := fresh())).update(**columns)
    return id


def following() -> UUID:
    follower = jobs.without_arguments.using(expires_in=HOUR, **DUE)
    first = jobs.add.using(on_complete=follower).enqueue(1).id
    operations.cancel([first])
    return QueuedJob.objects.get(follows=first).id


def replacing(**options: Any) -> UUID:
    jobs.render.using(**DUE).enqueue(1)
    return jobs.render.using(**options).enqueue(1).id


def again(**options: Any) -> UUID:
    operations.cancel([id := fresh()])
    return operations.replay(id, **options).id


def by_plain_sql() -> UUID:
    columns = {"job_type_id": ADD, "expires_at": MONTH + HOUR, **DUE}
    return QueuedJob.objects.create(**columns).id


HOUR: Final = timedelta(hours=1)
MONTH: Final = ago(-30 * 86_400)
DUE: Final = {"run_after": MONTH}
END: Final = {"expires_in": None, "expires_at": MONTH + HOUR}
LIVED: Final[dict[str, Callable[[], UUID]]] = {
    "as it was enqueued": fresh,
    "until a moment": lambda: fresh(**END),
    "one of many": lambda: jobs.add.using(**DUE, **END).enqueue_many([{"a": 1}])[0],
    "by plain SQL": by_plain_sql,
    "retried": lambda: moved(run_after=MONTH + HOUR / 2, attempts=3),
    "rescheduled": lambda: moved(run_after=MONTH + HOUR * 3),
    "run now": lambda: moved(run_after=ago(0)),
    "replaced": lambda: replacing(expires_in=HOUR),
    "replaced until a moment": lambda: replacing(expires_at=MONTH + HOUR),
    "following": following,
    "replayed": again,
    "replayed for later": lambda: again(**DUE),
    "replayed until the same end": lambda: again(expires="keep"),
    "replayed until another": lambda: again(**DUE, expires=MONTH + HOUR),
}


def test_a_replay_lives_as_long_as_the_job_did_from_when_it_was_first_due() -> None:
    for way, enqueue in LIVED.items():
        operations.cancel([id := enqueue()])
        new = QueuedJob.objects.get(pk=operations.replay(id).id)
        assert new.expires_at is not None
        assert new.expires_at - new.run_after == HOUR, way
        new.delete()


def test_a_job_whose_replay_failed_may_be_replayed_again() -> None:
    well, badly = archive(ADD), archive(ADD)
    archive(ADD, "succeeded", replay_of=well)
    archive(ADD, "failed", replay_of=badly, attempts=1)
    assert operations.replay_many([well, badly]) == {}
    made = operations.replay_many([well, badly], skip_replayed="succeeded")
    assert set(made) == {badly}


def test_one_key_replays_once_although_the_first_replay_ends_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between the look and the insert of another request with the same key."""
    old, key = archive(ADD), new_id()
    look, looked = replaying._made_before, []  # private: the moment of the look

    def look_too_early(*args: Any) -> Job | None:
        if looked:
            return look(*args)
        looked.append(archive(ADD, id=key, replay_of=old))
        return None

    # private: the moment between the two looks
    monkeypatch.setattr(replaying, "_made_before", look_too_early)
    assert operations.replay(old, new_id=key).is_over
    assert looked
    assert QueuedJob.objects.count() == 0


def test_every_replay_has_the_same_options_and_defaults() -> None:
    """Of a job, of many, of a bulk operation: one tuple says which they are."""
    options = Options._field_defaults
    for replay in (operations.replay, operations.replay_many):
        for name, parameter in inspect.signature(replay).parameters.items():
            if name not in ("id", "ids", "new_id", "data", "using", "by"):
                assert options[name] == parameter.default, name
