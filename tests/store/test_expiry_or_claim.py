"""A job expires, or can be claimed: never both, and never neither."""

from __future__ import annotations

import pytest

from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue import expire
from django_jobqueue.store.queue.claim_quarantined import claim_quarantined
from tests.pairwise import pairwise
from tests.store.rows import KEYED, ago, make, register
from tests.store.test_believed_policies import (
    BELIEVED,
    claims,
    declare,
    limits_of,
    waiting,
)
from tests.support.undone import check_each, undone

pytestmark = pytest.mark.django_db

EXPIRES = {"never": None, "later": -3_600.0, "a moment ago": 0.0}
OPTIONS = {
    "in_force": (*BELIEVED,),  # each has a claim of its own
    "expires": (*EXPIRES,),
    "quarantined": (False, True),
}


@pytest.mark.dear
def test_each_claim_takes_what_does_not_expire() -> None:
    """Whatever limits it, of jobs that run alone, too; and the reasons say so."""
    db = DjangoDatabase()
    worker = register(db, job_types=[KEYED])
    data = {"journal": "/dev/null", "key": "a"}

    @undone()
    def check(in_force: str, expires: str, quarantined: bool) -> None:
        declare(in_force)
        seconds = EXPIRES[expires]
        id = make(
            KEYED,
            data=data,
            run_after=ago(7_200),
            expires_at=None if seconds is None else ago(seconds),
            quarantined=quarantined,
        )
        told = waiting()[id]
        claimed = (
            claim_quarantined(db, worker, [KEYED], None)
            if quarantined
            else claims(db, worker, limits_of(in_force))
        )
        QueuedJob.objects.filter(pk=id).update(status="queued", worker_id=None)
        next_expiry = expire.next_expiry(db)
        gone = [one.id for one in expire.expire(db)]
        is_over = seconds is not None and seconds >= 0
        assert [job.id for job in claimed] == ([] if is_over else [id])
        assert gone == ([id] if is_over else [])
        assert (next_expiry is not None and next_expiry <= 0) is is_over
        assert ArchivedJob.objects.filter(pk=id, status="expired").exists() is is_over
        assert any("expire" in str(why) for why in told) is is_over

    check_each(check, ((*c.values(),) for c in pairwise(OPTIONS)), least=27)
