"""Let hosts work in a database, or in the copy of one, or not."""

from __future__ import annotations

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations.audit_log import record
from django_jobqueue.store import database_identity, host_rows
from django_jobqueue.store.connection import DjangoDatabase


@sync_only()
def wake(*, using: str | None = None, by: str = "") -> bool:
    """Let hosts work in this database from now on; waiting hosts begin within five
    seconds. Returns whether they slept.
    """
    db = DjangoDatabase(using)
    sleep = db.in_transaction(lambda: database_identity.wake(db))
    if sleep is not None:
        record("wake", by, 1, {"reason": sleep.value}, using=using)
    return sleep is not None


@sync_only()
def put_to_sleep(*, using: str | None = None, by: str = "") -> None:
    """Keep hosts that start in this database idle until ``wake``: no job, no schedule,
    no rescue.

    Raises InvalidArguments while hosts work in it, since they would go on.
    """
    db = DjangoDatabase(using)
    # Written first: a host that starts meanwhile writes its own row before its workers
    # read this one, so either it is counted here, or they sleep.
    before = db.in_transaction(lambda: database_identity.put_to_sleep(db))
    alive = host_rows.count_living(db)
    if alive:
        db.in_transaction(lambda: database_identity.write(db, before))
        raise InvalidArguments(
            "Stop the hosts of this database first, because they would go on "
            f"({alive} alive)."
        )
    record("put to sleep", by, 1, {}, using=using)
