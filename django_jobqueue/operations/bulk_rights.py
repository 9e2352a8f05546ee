"""The right to start a bulk operation, for the admin and the HTTP API."""

from __future__ import annotations

from typing import Final

from django_jobqueue.domain.states import BulkKind
from django_jobqueue.store.bulk.operation_rows import Operation

# Permissions of the app.
START: Final = "start_bulkoperation"
UNBOUNDED: Final = "unbounded_bulkoperation"
RESOLVE: Final = "change_failuregroup"
RIGHTS: Final = {
    BulkKind.REPLAY: "replay_archivedjob",
    BulkKind.CANCEL: "cancel_queuedjob",
    BulkKind.RUN_NOW: "reschedule_queuedjob",
    BulkKind.RESCHEDULE: "reschedule_queuedjob",
    BulkKind.PRUNE: "prune_archivedjob",
}


def rights_to_draft(bulk_action: str) -> list[str]:
    """The permissions to do this with many jobs."""
    return [START, RIGHTS[BulkKind(bulk_action)]]


def rights_to_start(operation: Operation) -> list[str]:
    """The permissions to start this draft."""
    rights = rights_to_draft(operation.kind)
    if operation.options.resolves:
        rights.append(RESOLVE)
    if is_unbounded(operation):
        rights.append(UNBOUNDED)
    return rights


def is_unbounded(operation: Operation) -> bool:
    """True if it selects, or may still select, more than half of the table."""
    counted = operation.counted
    return not counted.over or counted.is_most is not False
