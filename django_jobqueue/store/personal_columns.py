"""The columns of the core that can hold personal data, table by table, in the order of
the search.

A test compares them with the models: a new column is listed here, or there with the
reason why it cannot hold any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.states import Holds
from django_jobqueue.store.columns import JOB_COLUMNS, copied_to

DATA, TEXT, TEXTS, SELECTION = Holds

QUEUED: Final = "queued"
RUNNING: Final = "running"  # of the queued ones
ARCHIVED: Final = "archived"
# What a handler or a follower gets of a job. A waiting job is cancelled if it is erased
# there, and an archived one is not replayed.
GIVEN: Final = frozenset({"data", "metadata", "followers"})


class Column(NamedTuple):
    """A column, and its greatest length if it has one."""

    name: str
    holds: Holds
    longest: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A table with personal data."""

    name: str
    label: Any  # for people
    table: str
    order: Mapping[str, str]  # of an index, which names each row; with the types
    columns: Sequence[Column]
    reads: str = "NULL"  # a column that tells more of a row
    # What else is assigned to a row of which this column is changed.
    also: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    is_of_jobs: bool = False  # whether rows are deleted, if rows are to be
    is_of_value: bool = False  # whether a row is about the value, and goes with it
    where: str = "true"
    since: str = ""  # when a row came, where rows come from later sources
    page: str = ""  # of the admin that shows a row: ``jobqueue_console.jobsearch``
    effect: Any = ""  # what an erasure does besides, for people


_QUEUED: Final = {
    one.name: Column(one.name, one.holds, one.longest)
    for one in JOB_COLUMNS
    if one.holds is not None
}
_ARCHIVED: Final = [_QUEUED[name] for name in copied_to("archive") if name in _QUEUED]
# A bulk operation must not go on with what the erased condition selects by now.
STOPPED: Final = {
    "finished_at": "coalesce(finished_at, clock_timestamp())",
    "state": "CASE state WHEN 'done' THEN state ELSE 'stopped' END",
}
_NOT_REPLAYED: Final = {"erased_at": "clock_timestamp()"}
_ID: Final = {"id": "bigint"}
_UUID: Final = {"id": "uuid"}
_NAME: Final = {"name": "text"}

# The queue comes first: a job that leaves it meanwhile is found in the archive, at the
# end of its order.
SOURCES: Final = (
    Source(
        name=QUEUED,
        label=_("Waiting jobs"),
        effect=_(
            "Waiting jobs are cancelled if their data contains the value: they could "
            "not run without it."
        ),
        table="jobqueue_queuedjob",
        order=_UUID,
        columns=tuple(_QUEUED.values()),
        reads="status",
        is_of_jobs=True,
        since="created_at",
    ),
    Source(
        name=ARCHIVED,
        label=_("Archived jobs"),
        table="jobqueue_archivedjob",
        order={"finished_at": "timestamptz", "id": "uuid"},
        columns=(
            *_ARCHIVED,
            Column("result", DATA),
            Column("error_class", TEXT, 200),  # any text, of a remote worker
            Column("error_message", TEXT),
        ),
        also=dict.fromkeys(GIVEN, _NOT_REPLAYED),
        is_of_jobs=True,
        since="finished_at",
    ),
    Source(
        name="failures",
        label=_("Failures of attempts"),
        table="jobqueue_failure",
        order=_ID,
        columns=(
            Column("reason", TEXT),
            Column("error_class", TEXT, 200),
            Column("error_message", TEXT),
            Column("traceback", TEXT),
            Column("frames", TEXTS),
            Column("log_tail", TEXT),
        ),
        reads="job_id",
        is_of_jobs=True,
    ),
    Source(
        name="reports",
        label=_("Progress and log lines"),
        table="jobqueue_report",
        order=_ID,
        columns=(Column("note", TEXT, 500), Column("lines", TEXTS)),
        reads="job_id",
        is_of_jobs=True,
    ),
    Source(
        name="key_overrides",
        label=_("Overrides of keys"),
        table="jobqueue_keyoverride",
        order=_ID,
        columns=(Column("limit_key", TEXT, 260),),
        is_of_value=True,
    ),
    Source(
        name="failure_groups",
        label=_("Failure groups"),
        page="failuregroup",
        table="jobqueue_failuregroup",
        order={"fingerprint": "uuid"},
        columns=(
            Column("error_class", TEXT, 200),
            Column("template", TEXT),
            Column("notes", TEXT),
            Column("assignee", TEXT),
            Column("changed_by", TEXT),
        ),
    ),
    Source(
        name="job_types",
        label=_("Job types"),
        page="jobtype",
        table="jobqueue_jobtype",
        order=_NAME,
        columns=(
            Column("summary_override", TEXT, 200),
            Column("paused_by", TEXT),
            Column("paused_reason", TEXT),
        ),
    ),
    Source(
        name="queues",
        label=_("Queues"),
        page="queue",
        table="jobqueue_queue",
        order=_NAME,
        columns=(Column("paused_by", TEXT), Column("paused_reason", TEXT)),
    ),
    Source(
        name="bulk_operations",
        label=_("Bulk operations"),
        page="bulkoperation",
        effect=_("Bulk operations that select jobs by the value are stopped."),
        table="jobqueue_bulkoperation",
        order=_UUID,
        columns=(
            Column("selection", SELECTION),
            Column("reason", TEXT),
            Column("error", TEXT),
            Column("created_by", TEXT),
        ),
        also={"selection": STOPPED},
    ),
    Source(
        name="audit",
        label=_("Audit"),
        table="jobqueue_auditentry",
        order=_ID,
        columns=(Column("by", TEXT), Column("about", TEXTS), Column("details", TEXTS)),
    ),
    # Django's own; what the admin wrote there of our pages.
    Source(
        name="admin_history",
        label=_("History of the admin"),
        table="django_admin_log",
        order=_ID,
        columns=(Column("object_repr", TEXT, 200), Column("change_message", TEXT)),
        where=(
            "content_type_id IN (SELECT id FROM django_content_type"
            " WHERE app_label = 'jobqueue' OR app_label LIKE 'jobqueue\\_%%')"
        ),
    ),
)
