"""Every metric that there is: its name, kind, unit, labels and help.

``CLUSTER`` is read from the database and is the same on every host, so one address
is scraped for it. ``HOST`` is about one ``runworkers``, and each is scraped.
``PRODUCER`` is counted where jobs are enqueued. All are in ``METRICS``, by name. The
exposition, the reference, the dashboard's test and that of the alert rules read this
table, so a name stands here or nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from django_jobqueue.domain.endpoint_answers import AnswerClass
from django_jobqueue.domain.histogram import BOUNDS
from django_jobqueue.domain.states import GroupState
from django_jobqueue.store.totals import ATTEMPT_BOUNDS, ATTEMPT_OUTCOMES, STATUSES


class Kind(StrEnum):
    """The kinds of Prometheus."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Merge(StrEnum):
    """How the values of label sets that are folded into one become one value."""

    SUM = "sum"
    MAX = "max"


class Label(NamedTuple):
    """A label and its values; without values it can have any, such as each queue, and
    ``METRICS_SERIES`` limits their number."""

    name: str
    values: tuple[str, ...] = ()


class Metric(NamedTuple):
    """A line of the catalogue."""

    name: str  # with the unit, and with _total if it is a counter
    kind: Kind
    help: str
    labels: tuple[Label, ...] = ()
    unit: str = ""  # seconds or bytes: base units alone
    merge: Merge = Merge.SUM
    places: tuple[int, ...] = ()  # indexes of the bounds that are exposed
    bounds: tuple[float, ...] = ()  # of a histogram, as it is counted
    otel: str = ""  # its name in OpenTelemetry's conventions

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of its labels, in the order of a sample's values."""
        return tuple(label.name for label in self.labels)


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


def _gauge(name: str, help: str, *labels: Label, **more: object) -> Metric:
    return Metric(name=name, kind=Kind.GAUGE, help=help, labels=labels, **more)  # type: ignore[arg-type]


def _counter(name: str, help: str, *labels: Label, **more: object) -> Metric:
    return Metric(name=name, kind=Kind.COUNTER, help=help, labels=labels, **more)  # type: ignore[arg-type]


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
    _gauge(
        "jobqueue_jobs",
        "Queued and running jobs. Of one type in one queue, 10,000 in a state are "
        "counted; of running ones all.",
        QUEUE,
        JOB_TYPE,
        Label("state", JOB_STATES),
    ),
    _gauge(
        "jobqueue_oldest_ready_seconds",
        "How long the oldest ready job has waited; 0 if none is ready. Without paused "
        "queues and job types.",
        QUEUE,
        JOB_TYPE,
        unit="seconds",
        merge=Merge.MAX,
    ),
    _gauge(
        "jobqueue_unserved_jobs",
        "Waiting jobs that no living worker would claim.",
        QUEUE,
        JOB_TYPE,
    ),
    _gauge(
        "jobqueue_wanted_slots",
        "Slots that the ready and running jobs of a queue could use now.",
        QUEUE,
    ),
    _counter(
        "jobqueue_attempts_total",
        "Attempts that ended.",
        QUEUE,
        JOB_TYPE,
        OUTCOME,
        otel="messaging.client.consumed.messages",
    ),
    _counter(
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
    _gauge(
        "jobqueue_workers",
        "Living worker processes.",
        Label("state", ("running", "draining")),
    ),
    _gauge(
        "jobqueue_slots",
        "Slots of living workers that claim.",
        Label("kind", (*SLOT_KINDS, REMOTE_SLOTS)),
    ),
    _gauge("jobqueue_busy_slots", "Slots of living workers in which an attempt runs."),
    _gauge(
        "jobqueue_handed_over_jobs",
        "Running jobs that an endpoint has, and that hold no slot.",
        Label("endpoint"),
    ),
    _gauge(
        "jobqueue_paused",
        "1 for each paused queue and job type, and each type whose concurrency is 0.",
        Label("what", ("queue", "job_type")),
        Label("name"),
        merge=Merge.MAX,
    ),
    _gauge(
        "jobqueue_failure_groups",
        "Failure groups.",
        Label("state", tuple(GroupState.values)),
    ),
    _gauge(
        "jobqueue_crashes",
        "Of this hour and the last one: attempts at jobs that kill their worker, also "
        "alone; deaths of workers that jobs of the type may have caused; and attempts "
        "that only ran beside a job that is known to have done it.",
        JOB_TYPE,
        Label("part", CRASH_PARTS),
    ),
    _gauge(
        "jobqueue_table_bytes",
        "Size of a table with its indexes.",
        Label("table"),
        unit="bytes",
    ),
    _gauge(
        "jobqueue_dead_rows",
        "Dead rows of a table, as the statistics of PostgreSQL estimate them.",
        Label("table"),
    ),
    _gauge(
        "jobqueue_oldest_transaction_seconds",
        "Age of the oldest transaction in this database; 0 if none is open.",
        unit="seconds",
    ),
    _gauge(
        "jobqueue_xid_age",
        "Transactions since the oldest row of this database was frozen.",
    ),
    _gauge(
        "jobqueue_figures_age_seconds",
        "How old these figures are.",
        unit="seconds",
    ),
    _gauge("jobqueue_database_up", "1 if the database answered."),
    _gauge(
        "jobqueue_build_info",
        "1, with the versions of django_jobqueue and PostgreSQL.",
        Label("version"),
        Label("postgresql"),
        merge=Merge.MAX,
    ),
)

# Of one runworkers.
_HOST: Final = (
    _counter(
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
    _gauge("jobqueue_worker_slots", "Slots of this host.", Label("kind", SLOT_KINDS)),
    _gauge(
        "jobqueue_worker_busy_slots",
        "Slots of this host in which an attempt runs.",
        Label("kind", SLOT_KINDS),
    ),
    _gauge("jobqueue_worker_held_jobs", "Jobs that this host has claimed."),
    _gauge(
        "jobqueue_worker_unwritten_outcomes",
        "Outcomes that wait for the database.",
    ),
    _gauge(
        "jobqueue_worker_remaining_jobs",
        "Jobs that a stop or a drain still waits for; 0 without either.",
    ),
    _gauge("jobqueue_worker_stopping", "1 once this host was asked to stop."),
    _durations(
        "jobqueue_worker_outcome_delay_seconds",
        "Time from the end of a handler to the commit of its outcome.",
    ),
    _counter(
        "jobqueue_worker_claims_total",
        "Statements that claimed.",
        Label("result", ("jobs", "nothing")),
    ),
    _counter("jobqueue_worker_claimed_jobs_total", "Jobs that were claimed."),
    _counter(
        "jobqueue_worker_claim_seconds_total",
        "Time that claims took.",
        unit="seconds",
    ),
    _counter(
        "jobqueue_worker_endpoint_answers_total",
        "Requests with a job that this host sent to an endpoint, by the class of the "
        "answer, or what there was instead.",
        Label("endpoint"),
        Label("answer", tuple(AnswerClass.values)),
    ),
    _counter(
        "jobqueue_worker_refused_writes_total",
        "Outcomes that the database refused because another worker has the job.",
    ),
    _counter(
        "jobqueue_worker_rescued_jobs_total",
        "Jobs that this host took from dead workers, by result.",
        Label("became", ("queued", "failed", "cancelled")),
    ),
    _counter(
        "jobqueue_worker_deaths_total",
        "Processes of this host that died.",
        Label("how", ("killed", "exited", "unresponsive", "lapsed")),
    ),
    _counter(
        "jobqueue_worker_recycled_total",
        "Worker processes that were replaced on purpose.",
        Label("why", ("jobs", "age", "memory", "asked", "scaled")),
    ),
    _counter(
        "jobqueue_worker_notifications_total", "Notifications that were received."
    ),
    _counter(
        "jobqueue_worker_database_errors_total",
        "The queue's own database calls that failed.",
    ),
    _counter(
        "jobqueue_worker_dropped_signals_total",
        "Signals that were dropped because their receivers were too slow.",
    ),
    _gauge(
        "jobqueue_worker_lease_remaining_seconds",
        "How long the claims of this host still hold without renewal.",
        unit="seconds",
    ),
    _gauge("jobqueue_worker_database_up", "1 if the database answers this host."),
    _gauge(
        "jobqueue_worker_processes",
        "Processes of this host.",
        Label("process", ("supervisor", "maintenance", "exporter", "worker")),
    ),
    _gauge(
        "jobqueue_worker_resident_memory_bytes",
        "Sum of the resident memory of this host's processes.",
        Label("process", ("supervisor", "maintenance", "exporter", "worker")),
        unit="bytes",
    ),
)

# Of a process that enqueues, with METRICS_ENQUEUED.
_PRODUCER: Final = (
    _counter(
        "jobqueue_enqueued_jobs_total",
        "Jobs that this process enqueued, whether or not its transaction committed.",
        QUEUE,
        JOB_TYPE,
        otel="messaging.client.sent.messages",
    ),
)


def _by_name(metrics: Iterable[Metric]) -> Mapping[str, Metric]:
    return {metric.name: metric for metric in metrics}


CLUSTER: Final = _by_name(_CLUSTER)
HOST: Final = _by_name(_HOST)
PRODUCER: Final = _by_name(_PRODUCER)
METRICS: Final = {**CLUSTER, **HOST, **PRODUCER}
