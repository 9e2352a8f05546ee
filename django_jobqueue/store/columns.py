"""The columns of a queued job, each declared once: who gives its value, and what copies
it.

The statements that insert, replay, archive, dump and move a job, the record of a
schedule's firing, and the search for personal data are made from this table. The
models, the migrations, and the trigger that enqueues followers repeat it; tests compare
them.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, Literal, NamedTuple

from django_jobqueue.domain.states import Holds

# What else takes a column as it is, besides a replay.
Copy = Literal["archive", "dump", "move"]  # a move to another database
EVERYWHERE: Final[frozenset[Copy]] = frozenset(("archive", "dump", "move"))
OUTSIDE: Final[frozenset[Copy]] = frozenset(("dump", "move"))
MOVE: Final[frozenset[Copy]] = frozenset(("move",))


class JobColumn(NamedTuple):
    """A column of a queued job."""

    name: str
    sql_type: str
    # SQL of its value in an enqueue, of ``{given.name}``, which a NewJob gives, the
    # row ``type`` of the job type, and ``due.at``. Without it: the column's default.
    enqueued: str | None = None
    # SQL of its value in a replay, of the archived row ``old`` and parameters.
    replayed: str | None = None
    copied_to: frozenset[Copy] = EVERYWHERE
    is_option: bool = False  # an option of ``using()`` that the row holds as it is
    is_rare: bool = False  # few jobs have it: left out of the short INSERT
    is_replaced: bool = False  # by a duplicate, with the data of the job that waits
    default: object = None  # in a dump that leaves it out
    holds: Holds | None = None  # what an erasure of personal data searches it as
    longest: int | None = None  # characters, of a text that it searches


def _option(name: str, sql_type: str, **more: Any) -> JobColumn:
    """An option of one job: stored as it was given, and copied with the job."""
    values: dict[str, Any] = {
        "enqueued": f"{{given.{name}}}::{sql_type}",
        "replayed": f"old.{name}",
        "is_option": True,
        "is_rare": True,
        "is_replaced": True,
    }
    return JobColumn(name, sql_type, **{**values, **more})


_here: Final = partial(JobColumn, copied_to=frozenset())  # belongs to this database

# Plain SQL may have said nothing but the moment.
_LIFETIME: Final = "coalesce(old.expires_in, old.expires_at - old.created_at)"

JOB_COLUMNS: Final = (
    JobColumn(
        "id",
        "uuid",
        enqueued="{given.id}::uuid",
        replayed="coalesce(%(id)s::uuid, jobqueue_uuidv7())",
    ),
    JobColumn("job_type", "text", enqueued="type.name", replayed="old.job_type"),
    JobColumn(
        "queue",
        "text",
        enqueued="coalesce({given.queue}, type.queue)",
        replayed="coalesce(%(queue)s, old.queue)",
    ),
    # Operators override it, for jobs enqueued from then on.
    JobColumn(
        "priority",
        "smallint",
        enqueued="coalesce({given.priority}, type.priority_override,"
        " {given.declared_priority}, type.priority)",
        replayed="coalesce(%(priority)s, old.priority)",
    ),
    JobColumn(
        "data",
        "jsonb",
        enqueued="{given.data}::jsonb",
        replayed="coalesce(%(data)s::jsonb, old.data)",
        is_replaced=True,
        holds=Holds.DATA,
    ),
    JobColumn("run_after", "timestamptz", enqueued="due.at", replayed="due.at"),
    JobColumn(
        "expires_at",
        "timestamptz",
        enqueued="coalesce({given.expires_at}::timestamptz,"
        " jobqueue_later(due.at, coalesce({given.expires_in}::interval,"
        " type.expires_in)))",
        replayed=f"""CASE %(expires)s
            WHEN 'keep' THEN old.expires_at
            WHEN 'never' THEN NULL
            WHEN 'same' THEN jobqueue_later(due.at, {_LIFETIME})
            ELSE %(expires_at)s::timestamptz END""",
    ),
    # From when it was first due: retries and operators move ``run_after``.
    JobColumn(
        "expires_in",
        "interval",
        enqueued="coalesce({given.expires_at}::timestamptz - due.at,"
        " {given.expires_in}::interval, type.expires_in)",
        replayed=f"""CASE %(expires)s
            WHEN 'never' THEN NULL
            WHEN 'new' THEN %(expires_at)s::timestamptz - due.at
            ELSE {_LIFETIME} END""",
    ),
    JobColumn("created_at", "timestamptz", enqueued="clock_timestamp()"),
    _option(
        "max_attempts",
        "integer",
        replayed="coalesce(%(max_attempts)s, old.max_attempts)",
        is_replaced=False,
    ),
    _option("timeout", "interval", is_replaced=False),
    _option("backoff", "jsonb", is_replaced=False),
    JobColumn(
        "limit_key",
        "text",
        enqueued="""coalesce(type.limit_name || ' ' || {given.limit_key}::text,
                jobqueue_limit_key(type.limit_rule, {given.data}::jsonb))""",
        replayed="""CASE WHEN %(data)s::jsonb IS NULL
                 AND starts_with(old.limit_key, old.limit_name || ' ')
            THEN old.limit_key
            ELSE jobqueue_limit_key(old.limit_rule, coalesce(%(data)s::jsonb, old.data))
       END""",
        is_rare=True,
        is_replaced=True,
        holds=Holds.TEXT,
        longest=260,
    ),
    # Other data may weigh something else.
    _option(
        "weight",
        "integer",
        replayed="CASE WHEN %(data)s::jsonb IS NULL THEN old.weight END",
    ),
    JobColumn("replay_of", "uuid", replayed="old.id"),
    JobColumn("root_id", "uuid", replayed="coalesce(old.root_id, old.id)"),
    JobColumn("bulk_operation_id", "uuid", replayed="%(bulk_operation_id)s::uuid"),
    _option("enqueued_by", "text", replayed="%(by)s", is_rare=False, holds=Holds.TEXT),
    _option("tags", "jsonb", is_rare=False, holds=Holds.DATA),
    # A new job is not part of the trace of the old one, but refers to it as its origin;
    # what else a project keeps under that name stays.
    _option(
        "metadata",
        "jsonb",
        replayed="""CASE WHEN old.origin IS NULL AND (%(trace)s::jsonb IS NULL
                                         OR old.metadata -> 'trace' IS NOT NULL)
            THEN old.metadata
            ELSE coalesce(old.metadata, '{}') || jsonb_build_object(
                   'trace', coalesce(%(trace)s::jsonb, '{}') || jsonb_strip_nulls(
                              jsonb_build_object('origin', old.origin))) END""",
        holds=Holds.DATA,
    ),
    # By the caller, the code, or what the row says of a handler that is not known here.
    JobColumn(
        "followers",
        "jsonb",
        enqueued="""coalesce(
         type.followers || {given.followers}::jsonb, {given.followers},
         type.followers)""",
        replayed="old.followers",
        holds=Holds.DATA,
    ),
    JobColumn("follows", "uuid"),
    # An archiving counts these by itself.
    JobColumn("attempts", "integer", copied_to=OUTSIDE),
    JobColumn("crashes", "integer", copied_to=OUTSIDE),
    JobColumn(
        "unique_key",
        "uuid",
        enqueued="""coalesce({given.unique_key}::uuid, jobqueue_unique_key(
                  type.name, {given.unique_rule}::jsonb, {given.data}::jsonb))""",
        copied_to=OUTSIDE,
        is_rare=True,
    ),
    JobColumn(
        "unique_until_started",
        "boolean",
        enqueued="{given.unique_until_started}",
        copied_to=OUTSIDE,
        is_rare=True,
        default=False,
    ),
    JobColumn("fence", "bigint", copied_to=MOVE),
    JobColumn("quarantined", "boolean", copied_to=MOVE),
    _here("announce", "boolean", enqueued="{{announce}}", replayed="old.in_queue = 1"),
    _here("status", "text"),
    _here("worker_id", "bigint"),
    _here("started_at", "timestamptz"),
    _here("cancel_requested_at", "timestamptz"),
    _here("cancel_reason", "text", holds=Holds.TEXT),
    _here("awaited", "boolean"),
)
TYPES: Final = {column.name: column.sql_type for column in JOB_COLUMNS}
OPTIONS: Final = tuple(column.name for column in JOB_COLUMNS if column.is_option)
REPLACED: Final = ", ".join(
    f"{one.name} = excluded.{one.name}" for one in JOB_COLUMNS if one.is_replaced
)


def copied_to(copy: Copy) -> tuple[str, ...]:
    """The names of the columns that this copy of a job takes as they are."""
    return tuple(column.name for column in JOB_COLUMNS if copy in column.copied_to)


MOVED: Final = ", ".join(copied_to("archive"))
MOVED_OF_JOB: Final = ", ".join(f"job.{name}" for name in copied_to("archive"))

# Plain SQL may have used an archived id again. Then the job is deleted and the archive
# stays as it is; else every attempt to move the job would fail, forever. Successes are
# archived without this: it costs 17 % of the INSERT, and 8 % of its WAL.
UNLESS_ARCHIVED: Final = "ON CONFLICT (id) DO NOTHING"

# The limit of attempts that applies to a row of ``gone``, which is archived without a
# worker that knows it; null is unlimited.
EFFECTIVE_MAX_ATTEMPTS: Final = """
         (SELECT CASE WHEN type.delivery = 'at_most_once' THEN 1
                      WHEN gone.max_attempts IS NOT NULL THEN gone.max_attempts
                      WHEN type.max_attempts_override = -1 THEN NULL
                      ELSE coalesce(type.max_attempts_override, type.max_attempts) END
            FROM jobqueue_jobtype AS type WHERE type.name = gone.job_type)"""
