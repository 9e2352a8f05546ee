"""Every metric that there is: its name, kind, unit, labels and help.

``cluster()`` is read from the database and is the same on every host, so one address
is scraped for it. ``host()`` is about one ``runworkers``, and each is scraped.
``PRODUCER`` is counted where jobs are enqueued. All are in ``metrics()``, by name. The
exposition, the reference, the dashboard's test and that of the alert rules read this
table, so a name stands here, or in the room that measures it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from typing import Final

from django_jobqueue import rooms
from django_jobqueue.domain.histogram import BOUNDS
from django_jobqueue.domain.states import GroupState
from django_jobqueue.metrics.metric import (
    Kind,
    Label,
    Merge,
    Metric,
    RoomMetrics,
    counter,
    gauge,
)
from django_jobqueue.store.totals import ATTEMPT_BOUNDS, ATTEMPT_OUTCOMES, STATUSES

QUEUE: Final = Label("queue")
JOB_TYPE: Final = Label("job_type")
OUTCOME: Final = Label("outcome", ATTEMPT_OUTCOMES)
STATUS: Final = Label("status", STATUSES)
JOB_STATES: Final = ("ready", "later", "retrying", "running")
SLOT_KINDS: Final = ("thread", "async")
REMOTE_SLOTS: Final = "remote"
CRASH_PARTS: Final = ("culprit", "suspect", "beside")

# Durations are counted in 41 buckets; exposed are two for each power of ten.
EXPOSED_DURATIONS: Final = tuple(n for n in range(len(BOUNDS)) if n % 5 in (0, 2))


def _durations(name: str, help: str, *labels: Label, otel: str = "") -> Metric:
    return Metric(
        name=name,
        kind=Kind.HISTOGRAM,
        help=help,
        labels=labels,
        unit="seconds",
        bounds=BOUNDS,
        places=EXPOSED_DURATIONS,
        otel=otel,
    )


# Of the cluster. The help of each ends with the sentence that says so.
_CLUSTER: Final = (
    gauge(
        "jobqueue_jobs",
        "Queued and running jobs. Of one type in one queue, 10,000 in a state are "
        "counted; of running ones all.",
        QUEUE,
        JOB_TYPE,
        Label("state", JOB_STATES),
    ),
    gauge(
        "jobqueue_oldest_ready_seconds",
        "How long the oldest ready job has waited; 0 if none is ready. Without paused "
        "queues and job types.",
        QUEUE,
        JOB_TYPE,
        unit="seconds",
        merge=Merge.MAX,
    ),
    gauge(
        "jobqueue_unserved_jobs",
        "Waiting jobs that no living worker would claim.",
        QUEUE,
        JOB_TYPE,
    ),
    gauge(
        "jobqueue_wanted_slots",
        "Slots that the ready and running jobs of a queue could use now.",
        QUEUE,
    ),
    counter(
        "jobqueue_attempts_total",
        "Attempts that ended.",
        QUEUE,
        JOB_TYPE,
        OUTCOME,
        otel="messaging.client.consumed.messages",
    ),
    counter(
        "jobqueue_finished_jobs_total",
        "Jobs that were archived, by their last status.",
        QUEUE,
        JOB_TYPE,
        STATUS,
    ),
    _durations(
        "jobqueue_attempt_duration_seconds",
        "Run times of attempts.",
        JOB_TYPE,
        otel="messaging.process.duration",
    ),
    _durations(
        "jobqueue_attempt_wait_seconds",
        "How long jobs waited from when they were due to their claim.",
        JOB_TYPE,
    ),
    Metric(
        name="jobqueue_job_attempts",
        kind=Kind.HISTOGRAM,
        help="Attempts of jobs whose last one succeeded or failed.",
        labels=(JOB_TYPE,),
        bounds=ATTEMPT_BOUNDS,
        places=tuple(range(len(ATTEMPT_BOUNDS))),
    ),
    gauge(
        "jobqueue_workers",
        "Living worker processes.",
        Label("state", ("running", "draining")),
    ),
    gauge(
        "jobqueue_slots",
        "Slots of living workers that claim.",
        Label("kind", (*SLOT_KINDS, REMOTE_SLOTS)),
    ),
    gauge("jobqueue_busy_slots", "Slots of living workers in which an attempt runs."),
    gauge(
        "jobqueue_paused",
        "1 for each paused queue and job type, and each type whose concurrency is 0.",
        Label("what", ("queue", "job_type")),
        Label("name"),
        merge=Merge.MAX,
    ),
    gauge(
        "jobqueue_failure_groups",
        "Failure groups.",
        Label("state", tuple(GroupState.values)),
    ),
    gauge(
        "jobqueue_crashes",
        "Of this hour and the last one: attempts at jobs that kill their worker, also "
        "alone; deaths of workers that jobs of the type may have caused; and attempts "
        "that only ran beside a job that is known to have done it.",
        JOB_TYPE,
        Label("part", CRASH_PARTS),
    ),
    gauge(
        "jobqueue_table_bytes",
        "Size of a table with its indexes.",
        Label("table"),
        unit="bytes",
    ),
    gauge(
        "jobqueue_dead_rows",
        "Dead rows of a table, as the statistics of PostgreSQL estimate them.",
        Label("table"),
    ),
    gauge(
        "jobqueue_oldest_transaction_seconds",
        "Age of the oldest transaction in this database; 0 if none is open.",
        unit="seconds",
    ),
    gauge(
        "jobqueue_xid_age",
        "Transactions since the oldest row of this database was frozen.",
    ),
    gauge("jobqueue_figures_age_seconds", "How old these figures are.", unit="seconds"),
    gauge("jobqueue_database_up", "1 if the database answered."),
    gauge(
        "jobqueue_build_info",
        "1, with the versions of django_jobqueue and PostgreSQL.",
        Label("version"),
        Label("postgresql"),
        merge=Merge.MAX,
    ),
)

# Of one runworkers.
_HOST: Final = (
    counter(
        "jobqueue_worker_attempts_total",
        "Attempts that ended here.",
        QUEUE,
        JOB_TYPE,
        OUTCOME,
        otel="messaging.client.consumed.messages",
    ),
    _durations(
        "jobqueue_worker_attempt_duration_seconds",
        "Run times of attempts here.",
        JOB_TYPE,
        otel="messaging.process.duration",
    ),
    _durations(
        "jobqueue_worker_attempt_wait_seconds",
        "How long jobs waited from when they were due to their claim here.",
        JOB_TYPE,
    ),
    gauge("jobqueue_worker_slots", "Slots of this host.", Label("kind", SLOT_KINDS)),
    gauge(
        "jobqueue_worker_busy_slots",
        "Slots of this host in which an attempt runs.",
        Label("kind", SLOT_KINDS),
    ),
    gauge("jobqueue_worker_held_jobs", "Jobs that this host has claimed."),
    gauge("jobqueue_worker_unwritten_outcomes", "Outcomes that wait for the database."),
    gauge(
        "jobqueue_worker_remaining_jobs",
        "Jobs that a stop or a drain still waits for; 0 without either.",
    ),
    gauge("jobqueue_worker_stopping", "1 once this host was asked to stop."),
    _durations(
        "jobqueue_worker_outcome_delay_seconds",
        "Time from the end of a handler to the commit of its outcome.",
    ),
    counter(
        "jobqueue_worker_claims_total",
        "Statements that claimed.",
        Label("result", ("jobs", "nothing")),
    ),
    counter("jobqueue_worker_claimed_jobs_total", "Jobs that were claimed."),
    counter(
        "jobqueue_worker_claim_seconds_total", "Time that claims took.", unit="seconds"
    ),
    counter(
        "jobqueue_worker_refused_writes_total",
        "Outcomes that the database refused because another worker has the job.",
    ),
    counter(
        "jobqueue_worker_rescued_jobs_total",
        "Jobs that this host took from dead workers, by result.",
        Label("became", ("queued", "failed", "cancelled")),
    ),
    counter(
        "jobqueue_worker_deaths_total",
        "Processes of this host that died.",
        Label("how", ("killed", "exited", "unresponsive", "lapsed")),
    ),
    counter(
        "jobqueue_worker_recycled_total",
        "Worker processes that were replaced on purpose.",
        Label("why", ("jobs", "age", "memory", "asked", "scaled")),
    ),
    counter("jobqueue_worker_notifications_total", "Notifications that were received."),
    counter(
        "jobqueue_worker_database_errors_total",
        "The queue's own database calls that failed.",
    ),
    counter(
        "jobqueue_worker_dropped_signals_total",
        "Signals that were dropped because their receivers were too slow.",
    ),
    gauge(
        "jobqueue_worker_lease_remaining_seconds",
        "How long the claims of this host still hold without renewal.",
        unit="seconds",
    ),
    gauge("jobqueue_worker_database_up", "1 if the database answers this host."),
    gauge(
        "jobqueue_worker_processes",
        "Processes of this host.",
        Label("process", ("supervisor", "maintenance", "exporter", "worker")),
    ),
    gauge(
        "jobqueue_worker_resident_memory_bytes",
        "Sum of the resident memory of this host's processes.",
        Label("process", ("supervisor", "maintenance", "exporter", "worker")),
        unit="bytes",
    ),
)

# Of a process that enqueues, with METRICS_ENQUEUED.
_PRODUCER: Final = (
    counter(
        "jobqueue_enqueued_jobs_total",
        "Jobs that this process enqueued, whether or not its transaction committed.",
        QUEUE,
        JOB_TYPE,
        otel="messaging.client.sent.messages",
    ),
)


def _by_name(metrics: Iterable[Metric]) -> Mapping[str, Metric]:
    return {metric.name: metric for metric in metrics}


PRODUCER: Final = _by_name(_PRODUCER)


def of_rooms() -> list[RoomMetrics]:
    """What features measure."""
    return list(rooms.offered("metrics"))


@cache
def cluster() -> Mapping[str, Metric]:
    """Those that are read from the database."""
    return _by_name(chain(_CLUSTER, *(room.cluster for room in of_rooms())))


@cache
def host() -> Mapping[str, Metric]:
    """Those of one ``runworkers``."""
    return _by_name(chain(_HOST, *(room.host for room in of_rooms())))


@cache
def metrics() -> Mapping[str, Metric]:
    """All."""
    return {**cluster(), **host(), **PRODUCER}
