"""Names of events in log records: ``record.event``, for alerts and searches."""

from __future__ import annotations

from enum import StrEnum


class Event(StrEnum):
    """The event of a record, whatever its words are. Names never change."""

    HOST_STARTED = "host.started"
    HOST_ASLEEP = "host.asleep"
    HOST_STOPPING = "host.stopping"
    HOST_STOPPED = "host.stopped"
    HOST_ASKED = "host.asked"
    HOST_REFUSED = "host.refused"
    MAINTENANCE_DIED = "maintenance.died"
    EXPORTER_STARTED = "exporter.started"
    EXPORTER_DIED = "exporter.died"
    WORKER_STARTED = "worker.started"
    WORKER_ENDED = "worker.ended"
    WORKER_DIED = "worker.died"
    WORKER_RECYCLED = "worker.recycled"
    WORKER_UNRESPONSIVE = "worker.unresponsive"
    LEASE_LOST = "lease.lost"
    DATABASE_LOST = "database.lost"
    DATABASE_BACK = "database.back"
    DATABASE_ERROR = "database.error"
    LOOP_FAILED = "loop.failed"
    LOOP_WORKS = "loop.works"
    ATTEMPT_SUCCEEDED = "attempt.succeeded"
    ATTEMPT_RETRIED = "attempt.retried"
    ATTEMPT_FAILED = "attempt.failed"
    ATTEMPT_SNOOZED = "attempt.snoozed"
    ATTEMPT_CANCELLED = "attempt.cancelled"
    ATTEMPT_RELEASED = "attempt.released"
    ATTEMPT_CRASHED = "attempt.crashed"
    ATTEMPT_EXPIRED = "attempt.expired"
    ATTEMPT_HANDED_OVER = "attempt.handed_over"
    ALERT_NOT_SENT = "alert.not_sent"
    OPERATED = "operated"
