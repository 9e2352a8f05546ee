"""The archive's indexes ascend as its rows come; lists of the newest read them backward.

An index whose newest entry belongs on its first page splits full pages in halves; one
whose newest belongs on its last fills them.

Each index is made beside the one that it replaces, and nobody waits for a lock, however
large the archive is. Every statement may be repeated: a migration that was interrupted
is started again.
"""

from django.db import migrations, models
from django.db.models import Q

from django_jobqueue.migrations._postgresql import Migration as PostgreSQLMigration

BY_TIME = ["finished_at", "id"]
UNSUCCESSFUL = ~Q(status="succeeded")
CAUSED = Q(fingerprint__isnull=False)
# Name, columns before the time, condition of the rows, and the same in SQL.
INDEXES = [
    ("jobqueue_a_newest", [], None, ""),
    ("jobqueue_a_type", ["job_type"], None, ""),
    ("jobqueue_a_unsuccessful", ["status"], UNSUCCESSFUL, "status <> 'succeeded'"),
    (
        "jobqueue_a_type_unsuccessful",
        ["job_type"],
        UNSUCCESSFUL,
        "status <> 'succeeded'",
    ),
    ("jobqueue_a_fingerprint", ["fingerprint"], CAUSED, "fingerprint IS NOT NULL"),
]


def replacement(name: str, columns: list[str], condition: str) -> list[str]:
    """The statements that put an index on these columns in the place of this one."""
    where = f" WHERE {condition}" if condition else ""
    return [
        f"DROP INDEX CONCURRENTLY IF EXISTS {name}_made",
        f"CREATE INDEX CONCURRENTLY {name}_made"
        f" ON jobqueue_archivedjob ({', '.join(columns)}){where}",
        f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
        f"ALTER INDEX {name}_made RENAME TO {name}",
    ]


def ascend(
    name: str, before: list[str], condition: Q | None, where: str
) -> migrations.RunSQL:
    """Let this index ascend by time."""
    descending = [f"{column} DESC" for column in BY_TIME]
    index = models.Index(fields=[*before, *BY_TIME], name=name, condition=condition)
    return migrations.RunSQL(
        replacement(name, [*before, *BY_TIME], where),
        replacement(name, [*before, *descending], where),
        state_operations=[
            migrations.RemoveIndex("archivedjob", name),
            migrations.AddIndex("archivedjob", index),
        ],
    )


class Migration(PostgreSQLMigration):
    atomic = False

    dependencies = [
        ("jobqueue", "0003_reports_hooks_and_unique_jobs"),
    ]

    operations = [ascend(*index) for index in INDEXES]
