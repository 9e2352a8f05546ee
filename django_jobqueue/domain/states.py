"""The only spelling of each state, delivery and outcome."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class QueuedStatus(TextChoices):
    """The status of a queued job. "Ready" or "retrying" are views of ``queued``."""

    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")


class ArchivedStatus(TextChoices):
    """The status of a job that is over."""

    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")
    EXPIRED = "expired", _("expired")
    CANCELLED = "cancelled", _("cancelled")


class Delivery(TextChoices):
    """The promise of a job type about how often its handler is started."""

    AT_LEAST_ONCE = "at_least_once", _("at least once")
    AT_MOST_ONCE = "at_most_once", _("at most once")


class ReplayExpiry(StrEnum):
    """When a replayed job expires."""

    SAME = "same"  # the same time to live, from when the new job is due
    KEEP = "keep"  # the old moment: a job that expired expires again
    NEVER = "never"
    NEW = "new"  # at a moment that is given


class SkipReplayed(StrEnum):
    """The already replayed jobs that a replay leaves out."""

    ANY = "any"
    SUCCEEDED = "succeeded"  # only those whose replay succeeded
    NONE = "none"


class AttemptEnd(TextChoices):
    """The end of an attempt that did not succeed."""

    FAILED = "failed", _("failed")
    TIMED_OUT = "timed_out", _("timed out")
    CRASHED = "crashed", _("crashed")
    CANCELLED = "cancelled", _("cancelled")
    SNOOZED = "snoozed", _("snoozed")
    RELEASED = "released", _("released")


class WorkerState(TextChoices):
    """The state of a worker process, as in its row."""

    RUNNING = "running", _("running")
    DRAINING = "draining", _("draining")
    STOPPED = "stopped", _("stopped")
    LOST = "lost", _("lost")
    ENDPOINT = "endpoint", _("endpoint")  # no process: it holds handed-over jobs
    MOVING = "moving", _("moving")  # a command: it holds jobs for another database


class HostState(TextChoices):
    """The state of a host, as in its row."""

    RUNNING = "running", _("running")
    PARKED = "parked", _("parked")  # it has no processes
    DRAINING = "draining", _("draining")
    STANDBY = "standby", _("standing by")
    STOPPING = "stopping", _("stopping")
    RESTARTING = "restarting", _("restarting")
    STOPPED = "stopped", _("stopped")
    LOST = "lost", _("lost")  # it died


ALIVE: Final = (WorkerState.RUNNING, WorkerState.DRAINING)  # if its lease holds
WITHOUT_SLOTS: Final = (WorkerState.ENDPOINT, WorkerState.MOVING)  # whatever the lease


class GroupState(TextChoices):
    """The decision of people about a failure group."""

    OPEN = "open", _("open")
    RESOLVED = "resolved", _("resolved")
    IGNORED = "ignored", _("ignored")


class AlertCondition(TextChoices):
    """The reason for an alert."""

    FAILURE_GROUP = "failure_group", _("new failure")
    REGRESSION = "regression", _("resolved failure is back")
    BACKLOG = "backlog", _("backlog")
    NO_WORKER = "no_worker", _("no worker")
    UNSERVED = "unserved", _("not served")
    FAILING = "failing", _("failing job type")
    CRASHING = "crashing", _("crashing job type")
    OLD_TRANSACTION = "old_transaction", _("old transaction")


# Something happened, once; the others hold from a beginning to an end.
OCCURRENCES: Final = (AlertCondition.FAILURE_GROUP, AlertCondition.REGRESSION)


class BulkKind(TextChoices):
    """The verb of a bulk operation."""

    REPLAY = "replay", _("replay")
    CANCEL = "cancel", _("cancel")
    RUN_NOW = "run_now", _("run now")
    RESCHEDULE = "reschedule", _("reschedule")
    PRUNE = "prune", _("delete")


class WorkState(TextChoices):
    """The state of work in chunks: a bulk operation, an erasure, a search."""

    DRAFT = "draft", _("draft")
    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    PAUSED = "paused", _("paused")
    DONE = "done", _("done")
    STOPPED = "stopped", _("stopped")
    FAILED = "failed", _("failed")


class Holds(StrEnum):
    """The content of a column that may be about a person."""

    DATA = "data"  # JSON: texts, numbers and keys
    TEXT = "text"
    TEXTS = "texts"  # JSON whose texts are free; its numbers are our own
    SELECTION = "selection"  # of jobs, as JSON; or some, by name
