"""The tables, their indexes, functions and triggers."""

import datetime

import django.db.models.deletion
from django.db import migrations, models

import django_jobqueue.models.fields
from django_jobqueue.migrations import _sql as sql
from django_jobqueue.migrations._postgresql import Migration as PostgreSQLMigration


class Migration(PostgreSQLMigration):
    initial = True

    dependencies = []

    operations = [
        *(migrations.RunSQL(*pair) for pair in sql.BEFORE_TABLES),
        migrations.CreateModel(
            name="Queue",
            fields=[
                (
                    "name",
                    models.CharField(
                        db_collation="C",
                        max_length=100,
                        primary_key=True,
                        serialize=False,
                        verbose_name="name",
                    ),
                ),
                (
                    "paused",
                    models.BooleanField(db_default=False, verbose_name="paused"),
                ),
                (
                    "paused_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="paused at"
                    ),
                ),
                (
                    "paused_by",
                    models.TextField(db_default="", verbose_name="paused by"),
                ),
                (
                    "paused_reason",
                    models.TextField(blank=True, db_default="", verbose_name="reason"),
                ),
                (
                    "resume_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="resume at"
                    ),
                ),
            ],
            options={
                "verbose_name": "queue",
                "verbose_name_plural": "queues",
                "ordering": ["name"],
                "permissions": [("pause_queue", "Can pause and resume queues")],
                "default_permissions": ("view",),
                "required_db_vendor": "postgresql",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "resume_at__range",
                                (
                                    datetime.datetime(
                                        1, 1, 3, 0, 0, tzinfo=datetime.UTC
                                    ),
                                    datetime.datetime(
                                        9999, 12, 30, 0, 0, tzinfo=datetime.UTC
                                    ),
                                ),
                            )
                        ),
                        name="jobqueue_queue_resume_at",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Rollup",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "bucket",
                        "job_type",
                        "queue",
                        "release",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("bucket", models.DateTimeField(verbose_name="bucket")),
                ("job_type", models.CharField(max_length=100, verbose_name="job type")),
                ("queue", models.CharField(max_length=100, verbose_name="queue")),
                (
                    "release",
                    models.CharField(
                        db_default="", max_length=100, verbose_name="release"
                    ),
                ),
                (
                    "succeeded",
                    models.IntegerField(db_default=0, verbose_name="succeeded"),
                ),
                ("failed", models.IntegerField(db_default=0, verbose_name="failed")),
                ("retried", models.IntegerField(db_default=0, verbose_name="retried")),
                ("other", models.IntegerField(db_default=0, verbose_name="other")),
                (
                    "run_ms",
                    models.BigIntegerField(db_default=0, verbose_name="run time (ms)"),
                ),
                (
                    "wait_ms",
                    models.BigIntegerField(db_default=0, verbose_name="wait (ms)"),
                ),
                (
                    "run_histogram",
                    django_jobqueue.models.fields.CountsField(
                        db_default=[], verbose_name="run times"
                    ),
                ),
                (
                    "wait_histogram",
                    django_jobqueue.models.fields.CountsField(
                        db_default=[], verbose_name="waits"
                    ),
                ),
            ],
            options={
                "verbose_name": "roll-up",
                "verbose_name_plural": "roll-ups",
                "default_permissions": ("view",),
                "required_db_vendor": "postgresql",
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "remote",
                    models.BooleanField(
                        db_default=False,
                        help_text="Another program that works over the HTTP API.",
                        verbose_name="remote",
                    ),
                ),
                (
                    "owner",
                    models.TextField(db_default="", verbose_name="owner"),
                ),
                (
                    "lease_seconds",
                    models.FloatField(blank=True, null=True, verbose_name="lease"),
                ),
                ("name", models.CharField(max_length=200, verbose_name="name")),
                ("host", models.CharField(max_length=200, verbose_name="host")),
                ("pid", models.IntegerField(verbose_name="process id")),
                (
                    "identity",
                    models.CharField(
                        db_default="", max_length=200, verbose_name="identity"
                    ),
                ),
                (
                    "supervisor",
                    models.CharField(
                        db_default="", max_length=200, verbose_name="supervisor"
                    ),
                ),
                (
                    "release",
                    models.CharField(
                        db_default="", max_length=100, verbose_name="release"
                    ),
                ),
                (
                    "queues",
                    models.JSONField(blank=True, null=True, verbose_name="queues"),
                ),
                (
                    "job_types",
                    models.JSONField(db_default=[], verbose_name="job types"),
                ),
                ("threads", models.IntegerField(db_default=0, verbose_name="threads")),
                (
                    "async_slots",
                    models.IntegerField(db_default=0, verbose_name="async slots"),
                ),
                ("versions", models.JSONField(db_default={}, verbose_name="versions")),
                (
                    "started_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="started at",
                    ),
                ),
                (
                    "renewed_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="renewed at",
                    ),
                ),
                (
                    "lease_until",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="lease until",
                    ),
                ),
                (
                    "stopped_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="stopped at"
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "running"),
                            ("draining", "draining"),
                            ("stopped", "stopped"),
                            ("lost", "lost"),
                            ("endpoint", "endpoint"),
                            ("moving", "moving"),
                        ],
                        db_default="running",
                        max_length=10,
                        verbose_name="state",
                    ),
                ),
                ("end", models.TextField(db_default="", verbose_name="how it ended")),
                (
                    "rescued",
                    models.JSONField(db_default={}, verbose_name="results of its jobs"),
                ),
                ("running", models.IntegerField(db_default=0, verbose_name="running")),
                ("rss", models.BigIntegerField(db_default=0, verbose_name="memory")),
                (
                    "listening",
                    models.BooleanField(
                        db_default=False,
                        help_text="The worker is idle and waits to be notified of new jobs.",
                        verbose_name="listening",
                    ),
                ),
                (
                    "answers",
                    models.JSONField(db_default={}, verbose_name="answers"),
                ),
                (
                    "desired",
                    models.CharField(
                        db_default="", max_length=10, verbose_name="asked to"
                    ),
                ),
                (
                    "request",
                    models.JSONField(blank=True, null=True, verbose_name="request"),
                ),
                (
                    "stack_dump",
                    models.JSONField(blank=True, null=True, verbose_name="stack dump"),
                ),
            ],
            options={
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
                "permissions": [
                    ("control_worker", "Can ask workers to drain, stop or restart"),
                    ("work_remotely", "Can do jobs as a remote worker, over HTTP"),
                ],
                "default_permissions": ("view",),
                "required_db_vendor": "postgresql",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "endpoint")),
                        fields=("name",),
                        name="jobqueue_one_endpoint",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="BulkOperation",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=django_jobqueue.models.fields.NewId(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("replay", "replay"),
                            ("cancel", "cancel"),
                            ("run_now", "run now"),
                            ("reschedule", "reschedule"),
                            ("prune", "delete"),
                        ],
                        max_length=20,
                        verbose_name="kind",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("draft", "draft"),
                            ("queued", "queued"),
                            ("running", "running"),
                            ("paused", "paused"),
                            ("done", "done"),
                            ("stopped", "stopped"),
                            ("failed", "failed"),
                        ],
                        db_default="draft",
                        max_length=10,
                        verbose_name="state",
                    ),
                ),
                ("selection", models.JSONField(verbose_name="selection")),
                (
                    "cutoff",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="frozen at",
                    ),
                ),
                ("options", models.JSONField(db_default={}, verbose_name="options")),
                (
                    "reason",
                    models.TextField(blank=True, db_default="", verbose_name="reason"),
                ),
                (
                    "per_minute",
                    models.IntegerField(
                        blank=True,
                        help_text="Empty: no limit.",
                        null=True,
                        verbose_name="jobs per minute",
                    ),
                ),
                (
                    "total",
                    models.BigIntegerField(
                        help_text="Number of matching jobs when the operation began.",
                        null=True,
                        verbose_name="total",
                    ),
                ),
                (
                    "horizon",
                    models.CharField(
                        db_default="",
                        help_text="The oldest transaction that was open when the selection was frozen.",
                        max_length=20,
                        verbose_name="horizon",
                    ),
                ),
                (
                    "counted",
                    models.JSONField(
                        help_text="Facts about the jobs counted so far.",
                        null=True,
                        verbose_name="counted",
                    ),
                ),
                (
                    "confirmed",
                    models.BigIntegerField(
                        help_text="The operation changes no more jobs than this.",
                        null=True,
                        verbose_name="confirmed",
                    ),
                ),
                ("seen", models.BigIntegerField(db_default=0, verbose_name="seen")),
                (
                    "changed",
                    models.BigIntegerField(db_default=0, verbose_name="changed"),
                ),
                ("skipped", models.JSONField(db_default={}, verbose_name="skipped")),
                (
                    "cursor",
                    models.JSONField(blank=True, null=True, verbose_name="cursor"),
                ),
                (
                    "error",
                    models.TextField(blank=True, db_default="", verbose_name="error"),
                ),
                (
                    "created_by",
                    models.TextField(db_default="", verbose_name="created by"),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="created at",
                    ),
                ),
                (
                    "started_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="started at"
                    ),
                ),
                (
                    "progress_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="last progress"
                    ),
                ),
                (
                    "finished_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="finished at"
                    ),
                ),
                (
                    "job_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The job that does the work. Empty if a command does it.",
                        null=True,
                        verbose_name="job",
                    ),
                ),
            ],
            options={
                "verbose_name": "bulk operation",
                "verbose_name_plural": "bulk operations",
                "permissions": [
                    ("start_bulkoperation", "Can start and stop bulk operations"),
                    (
                        "unbounded_bulkoperation",
                        "Can start bulk operations on most jobs",
                    ),
                ],
                "default_permissions": ("view",),
                "required_db_vendor": "postgresql",
                "indexes": [
                    models.Index(
                        models.OrderBy(models.F("created_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="jobqueue_b_newest",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Failure",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("job_id", models.UUIDField(verbose_name="job")),
                ("job_type", models.CharField(max_length=100, verbose_name="job type")),
                ("number", models.IntegerField(verbose_name="attempt")),
                (
                    "end",
                    models.CharField(
                        choices=[
                            ("failed", "failed"),
                            ("timed_out", "timed out"),
                            ("crashed", "crashed"),
                            ("cancelled", "cancelled"),
                            ("snoozed", "snoozed"),
                            ("released", "released"),
                        ],
                        max_length=10,
                        verbose_name="end",
                    ),
                ),
                ("reason", models.TextField(db_default="", verbose_name="reason")),
                (
                    "started_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="started at"
                    ),
                ),
                (
                    "finished_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="finished at",
                    ),
                ),
                (
                    "worker",
                    models.CharField(
                        db_default="", max_length=200, verbose_name="worker"
                    ),
                ),
                (
                    "release",
                    models.CharField(
                        db_default="", max_length=100, verbose_name="release"
                    ),
                ),
                (
                    "error_class",
                    models.CharField(
                        db_default="", max_length=200, verbose_name="error class"
                    ),
                ),
                (
                    "error_message",
                    models.TextField(db_default="", verbose_name="error message"),
                ),
                (
                    "traceback",
                    models.TextField(db_default="", verbose_name="traceback"),
                ),
                ("frames", models.JSONField(db_default=[], verbose_name="frames")),
                ("log_tail", models.TextField(db_default="", verbose_name="log")),
                (
                    "fingerprint",
                    models.UUIDField(blank=True, null=True, verbose_name="fingerprint"),
                ),
            ],
            options={
                "verbose_name": "failure",
                "verbose_name_plural": "failures",
                "default_permissions": ("view",),
                "required_db_vendor": "postgresql",
                "indexes": [
                    models.Index(
                        models.F("job_id"), models.F("id"), name="jobqueue_f_job"
                    ),
                    models.Index(
                        models.F("fingerprint"),
                        models.OrderBy(models.F("finished_at"), descending=True),
                        condition=models.Q(("fingerprint__isnull", False)),
                        name="jobqueue_f_fingerprint",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="FailureGroup",
            fields=[
                (
                    "fingerprint",
                    models.UUIDField(
                        primary_key=True, serialize=False, verbose_name="fingerprint"
                    ),
                ),
                (
                    "coarse",
                    models.UUIDField(db_index=True, verbose_name="coarse fingerprint"),
                ),
                (
                    "error_class",
                    models.CharField(max_length=200, verbose_name="error class"),
                ),
                ("frame", models.CharField(max_length=300, verbose_name="frame")),
                ("template", models.TextField(db_default="", verbose_name="message")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "open"),
                            ("resolved", "resolved"),
                            ("ignored", "ignored"),
                        ],
                        db_default="open",
                        max_length=10,
                        verbose_name="state",
                    ),
                ),
                (
                    "first_seen",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="first seen",
                    ),
                ),
                (
                    "last_seen",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        help_text="When a worker last recorded such a failure; accurate to some ten seconds.",
                        verbose_name="last seen",
                    ),
                ),
                (
                    "resolved_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="resolved at"
                    ),
                ),
                (
                    "resolved_in",
                    models.CharField(
                        db_default="",
                        max_length=100,
                        verbose_name="resolved in release",
                    ),
                ),
                (
                    "excused",
                    models.JSONField(
                        db_default=[],
                        help_text="Releases whose failures do not reopen it.",
                        verbose_name="excused releases",
                    ),
                ),
                (
                    "regressed_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="regressed at"
                    ),
                ),
                (
                    "ignored_until",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="ignored until"
                    ),
                ),
                (
                    "assignee",
                    models.TextField(
                        blank=True,
                        db_default="",
                        verbose_name="assignee",
                    ),
                ),
                (
                    "notes",
                    models.TextField(blank=True, db_default="", verbose_name="notes"),
                ),
                (
                    "changed_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="changed at"
                    ),
                ),
                (
                    "changed_by",
                    models.TextField(db_default="", verbose_name="changed by"),
                ),
            ],
            options={
                "verbose_name": "failure group",
                "verbose_name_plural": "failure groups",
                "default_permissions": ("view", "change"),
                "required_db_vendor": "postgresql",
                "indexes": [
                    models.Index(
                        models.OrderBy(models.F("last_seen"), descending=True),
                        models.OrderBy(models.F("fingerprint"), descending=True),
                        name="jobqueue_g_newest",
                    ),
                    models.Index(
                        models.F("state"),
                        models.OrderBy(models.F("last_seen"), descending=True),
                        models.OrderBy(models.F("fingerprint"), descending=True),
                        name="jobqueue_g_state",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="FailureRollup",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "fingerprint",
                        "bucket",
                        "job_type",
                        "release",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("fingerprint", models.UUIDField(verbose_name="fingerprint")),
                ("bucket", models.DateTimeField(verbose_name="bucket")),
                (
                    "job_type",
                    models.CharField(
                        db_default="", max_length=100, verbose_name="job type"
                    ),
                ),
                (
                    "release",
                    models.CharField(
                        db_default="", max_length=100, verbose_name="release"
                    ),
                ),
                ("failed", models.IntegerField(db_default=0, verbose_name="failed")),
                ("retried", models.IntegerField(db_default=0, verbose_name="retried")),
            ],
            options={
                "verbose_name": "failure roll-up",
                "verbose_name_plural": "failure roll-ups",
                "default_permissions": ("view",),
                "required_db_vendor": "postgresql",
                "indexes": [
                    models.Index(models.F("bucket"), name="jobqueue_fr_bucket")
                ],
            },
        ),
        migrations.CreateModel(
            name="JobType",
            fields=[
                (
                    "name",
                    models.CharField(
                        db_collation="C",
                        max_length=100,
                        primary_key=True,
                        serialize=False,
                        verbose_name="name",
                    ),
                ),
                (
                    "handler",
                    models.CharField(
                        db_default="", max_length=300, verbose_name="handler"
                    ),
                ),
                (
                    "description",
                    models.TextField(db_default="", verbose_name="description"),
                ),
                (
                    "queue",
                    models.CharField(
                        db_collation="C",
                        db_default="default",
                        max_length=100,
                        verbose_name="queue",
                    ),
                ),
                (
                    "priority",
                    models.SmallIntegerField(db_default=0, verbose_name="priority"),
                ),
                (
                    "max_attempts",
                    models.IntegerField(
                        blank=True, db_default=5, null=True, verbose_name="max attempts"
                    ),
                ),
                (
                    "backoff",
                    models.CharField(
                        db_default="exponential", max_length=200, verbose_name="backoff"
                    ),
                ),
                (
                    "retry",
                    models.JSONField(
                        db_default=[],
                        help_text="Retry rules by exception class.",
                        verbose_name="retry rules",
                    ),
                ),
                (
                    "timeout",
                    models.DurationField(blank=True, null=True, verbose_name="timeout"),
                ),
                (
                    "delivery",
                    models.CharField(
                        choices=[
                            ("at_least_once", "at least once"),
                            ("at_most_once", "at most once"),
                        ],
                        db_default="at_least_once",
                        max_length=20,
                        verbose_name="delivery",
                    ),
                ),
                (
                    "concurrency",
                    models.IntegerField(
                        blank=True, null=True, verbose_name="concurrency"
                    ),
                ),
                (
                    "rate",
                    models.CharField(
                        blank=True,
                        help_text="How many start in any window. Empty: unlimited.",
                        max_length=100,
                        null=True,
                        verbose_name="rate",
                    ),
                ),
                (
                    "atomic",
                    models.BooleanField(db_default=False, verbose_name="atomic"),
                ),
                (
                    "expires_in",
                    models.DurationField(
                        blank=True, null=True, verbose_name="expires in"
                    ),
                ),
                (
                    "max_crashes",
                    models.IntegerField(db_default=3, verbose_name="max crashes"),
                ),
                (
                    "sensitive",
                    models.JSONField(db_default=[], verbose_name="sensitive"),
                ),
                (
                    "indexed",
                    models.JSONField(db_default=[], verbose_name="indexed"),
                ),
                (
                    "summary",
                    models.CharField(
                        blank=True, max_length=200, null=True, verbose_name="summary"
                    ),
                ),
                (
                    "unique_by",
                    models.CharField(
                        db_default="",
                        help_text="The arguments by which jobs are unique. Empty: not unique.",
                        max_length=300,
                        verbose_name="unique by",
                    ),
                ),
                (
                    "unique_rule",
                    models.JSONField(
                        blank=True,
                        help_text="The unique rule in the database's form. Empty: not unique.",
                        null=True,
                        verbose_name="unique rule",
                    ),
                ),
                (
                    "limit_name",
                    models.CharField(
                        blank=True,
                        db_collation="C",
                        help_text="The limit that its jobs count against, each under its key.",
                        max_length=100,
                        null=True,
                        verbose_name="limit by key",
                    ),
                ),
                (
                    "limit_rule",
                    models.JSONField(
                        blank=True,
                        help_text="How the database computes a job's key.",
                        null=True,
                        verbose_name="rule of the key",
                    ),
                ),
                (
                    "weight_rule",
                    models.JSONField(
                        blank=True,
                        help_text="How the database computes a job's weight, and for which rates.",
                        null=True,
                        verbose_name="rule of the weight",
                    ),
                ),
                (
                    "followers",
                    models.JSONField(blank=True, null=True, verbose_name="followers"),
                ),
                (
                    "follower_arguments",
                    models.JSONField(
                        db_default=["job", "status"],
                        verbose_name="arguments as a follower",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="created at",
                    ),
                ),
                (
                    "declared_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="declared at",
                    ),
                ),
                (
                    "priority_override",
                    models.SmallIntegerField(
                        blank=True, null=True, verbose_name="priority"
                    ),
                ),
                (
                    "max_attempts_override",
                    models.IntegerField(
                        blank=True,
                        help_text="-1: unlimited.",
                        null=True,
                        verbose_name="max attempts",
                    ),
                ),
                (
                    "timeout_override",
                    models.DurationField(
                        blank=True,
                        help_text="0 is no time limit.",
                        null=True,
                        verbose_name="timeout",
                    ),
                ),
                (
                    "concurrency_override",
                    models.IntegerField(
                        blank=True,
                        help_text="Jobs running at once in the whole cluster; 0 pauses, -1 is unlimited.",
                        null=True,
                        verbose_name="concurrency",
                    ),
                ),
                (
                    "rate_override",
                    models.CharField(
                        blank=True,
                        help_text="Starts in any window in the whole cluster, for example: 100/m, or 10/s burst 3, or unlimited.",
                        max_length=100,
                        null=True,
                        verbose_name="rate",
                    ),
                ),
                (
                    "keep_succeeded_override",
                    models.DurationField(
                        blank=True, null=True, verbose_name="keep succeeded jobs for"
                    ),
                ),
                (
                    "keep_unsuccessful_override",
                    models.DurationField(
                        blank=True, null=True, verbose_name="keep other jobs for"
                    ),
                ),
                (
                    "summary_override",
                    models.CharField(
                        blank=True,
                        help_text="Shown for each job in lists, for example: order {order_id}.",
                        max_length=200,
                        null=True,
                        verbose_name="summary",
                    ),
                ),
                (
                    "paused",
                    models.BooleanField(db_default=False, verbose_name="paused"),
                ),
                (
                    "paused_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="paused at"
                    ),
                ),
                (
                    "paused_by",
                    models.TextField(db_default="", verbose_name="paused by"),
                ),
                (
                    "paused_reason",
                    models.TextField(blank=True, db_default="", verbose_name="reason"),
                ),
                (
                    "resume_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When the pause ends by itself. Empty: never.",
                        null=True,
                        verbose_name="resume at",
                    ),
                ),
            ],
            options={
                "verbose_name": "job type",
                "verbose_name_plural": "job types",
                "ordering": ["name"],
                "permissions": [
                    ("pause_jobtype", "Can pause and resume job types"),
                    ("enqueue_job", "Can enqueue jobs by hand"),
                ],
                "default_permissions": ("view", "change"),
                "required_db_vendor": "postgresql",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("name", ""), _negated=True),
                        name="jobqueue_t_name",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("delivery__in", ["at_least_once", "at_most_once"])
                        ),
                        name="jobqueue_t_delivery",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("max_attempts__isnull", True),
                            ("max_attempts__gt", 0),
                            _connector="OR",
                        ),
                        name="jobqueue_t_max_attempts",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("max_attempts_override__isnull", True),
                            ("max_attempts_override", -1),
                            ("max_attempts_override__gt", 0),
                            _connector="OR",
                        ),
                        name="jobqueue_t_max_attempts_override",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("concurrency__isnull", True),
                            ("concurrency__gte", 0),
                            _connector="OR",
                        ),
                        name="jobqueue_t_concurrency",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("concurrency_override__isnull", True),
                            ("concurrency_override__gte", -1),
                            _connector="OR",
                        ),
                        name="jobqueue_t_concurrency_override",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("rate__isnull", True),
                                (
                                    "rate__regex",
                                    "^[1-9][0-9]{0,9}/[0-9]{1,10}([.][0-9]{1,6})?s burst [1-9][0-9]{0,9}$",
                                ),
                                _connector="OR",
                            ),
                            models.Q(
                                ("rate_override__isnull", True),
                                ("rate_override", "unlimited"),
                                (
                                    "rate_override__regex",
                                    "^[1-9][0-9]{0,9}/[0-9]{1,10}([.][0-9]{1,6})?s burst [1-9][0-9]{0,9}$",
                                ),
                                _connector="OR",
                            ),
                        ),
                        name="jobqueue_t_rate",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("priority__range", (-100, 100)),
                            models.Q(
                                ("priority_override__isnull", True),
                                ("priority_override__range", (-100, 100)),
                                _connector="OR",
                            ),
                        ),
                        name="jobqueue_t_priority",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("delivery", "at_most_once"), _negated=True),
                            ("max_attempts", 1),
                            _connector="OR",
                        ),
                        name="jobqueue_t_at_most_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("max_crashes__gt", 0)),
                        name="jobqueue_t_max_crashes",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "resume_at__range",
                                (
                                    datetime.datetime(
                                        1, 1, 3, 0, 0, tzinfo=datetime.UTC
                                    ),
                                    datetime.datetime(
                                        9999, 12, 30, 0, 0, tzinfo=datetime.UTC
                                    ),
                                ),
                            ),
                        ),
                        name="jobqueue_t_resume_at",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Report",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("job_id", models.UUIDField(verbose_name="job")),
                (
                    "fence",
                    models.BigIntegerField(
                        help_text="Number of the claim, which keeps the reports of attempts apart.",
                        verbose_name="fence",
                    ),
                ),
                ("number", models.IntegerField(verbose_name="attempt")),
                ("done", models.FloatField(blank=True, null=True, verbose_name="done")),
                ("total", models.FloatField(blank=True, null=True, verbose_name="of")),
                (
                    "note",
                    models.CharField(
                        db_default="", max_length=500, verbose_name="note"
                    ),
                ),
                (
                    "lines",
                    models.JSONField(
                        db_default=[],
                        help_text="Each line is a list: seconds since 1970, level, text.",
                        verbose_name="lines",
                    ),
                ),
                (
                    "dropped",
                    models.IntegerField(
                        db_default=0,
                        help_text="Number of lines dropped because the limit was reached.",
                        verbose_name="dropped",
                    ),
                ),
                (
                    "queries",
                    models.IntegerField(
                        blank=True,
                        help_text="Number of queries sent to databases.",
                        null=True,
                        verbose_name="queries",
                    ),
                ),
                (
                    "query_ms",
                    models.FloatField(
                        blank=True, null=True, verbose_name="time of queries (ms)"
                    ),
                ),
                (
                    "started_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="started at",
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="updated at",
                    ),
                ),
            ],
            options={
                "verbose_name": "report",
                "verbose_name_plural": "reports",
                "default_permissions": (),
                "required_db_vendor": "postgresql",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("job_id", "fence"), name="jobqueue_report_attempt"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="UniqueWindow",
            fields=[
                (
                    "key",
                    models.UUIDField(
                        primary_key=True, serialize=False, verbose_name="unique key"
                    ),
                ),
                ("job_id", models.UUIDField(verbose_name="job")),
                (
                    "held_until",
                    django_jobqueue.models.fields.UTCDateTimeField(
                        blank=True,
                        help_text="Empty: forever.",
                        null=True,
                        verbose_name="held until",
                    ),
                ),
                (
                    "opened_at",
                    django_jobqueue.models.fields.UTCDateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="opened at",
                    ),
                ),
            ],
            options={
                "verbose_name": "unique window",
                "verbose_name_plural": "unique windows",
                "default_permissions": (),
                "required_db_vendor": "postgresql",
                "indexes": [
                    models.Index(models.F("job_id"), name="jobqueue_w_job"),
                    models.Index(
                        models.F("held_until"),
                        condition=models.Q(("held_until__isnull", False)),
                        name="jobqueue_w_held_until",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ArchivedJob",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=django_jobqueue.models.fields.NewId(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                (
                    "queue",
                    models.CharField(
                        db_collation="C",
                        db_default="default",
                        max_length=100,
                        verbose_name="queue",
                    ),
                ),
                (
                    "priority",
                    models.SmallIntegerField(
                        db_default=0,
                        help_text="-100 to 100; higher runs first.",
                        verbose_name="priority",
                    ),
                ),
                (
                    "data",
                    models.JSONField(
                        db_default={},
                        help_text="The arguments of the handler.",
                        verbose_name="data",
                    ),
                ),
                (
                    "run_after",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="run after",
                    ),
                ),
                (
                    "expires_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="expires at"
                    ),
                ),
                (
                    "expires_in",
                    models.DurationField(
                        blank=True,
                        help_text="From when the job was first due until it expires.",
                        null=True,
                        verbose_name="expires in",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        editable=False,
                        verbose_name="created at",
                    ),
                ),
                (
                    "attempts",
                    models.IntegerField(db_default=0, verbose_name="attempts"),
                ),
                (
                    "max_attempts",
                    models.IntegerField(
                        blank=True,
                        help_text="Empty: the limit of the job type.",
                        null=True,
                        verbose_name="max attempts",
                    ),
                ),
                (
                    "timeout",
                    models.DurationField(
                        blank=True,
                        help_text="Empty: the limit of the job type.",
                        null=True,
                        verbose_name="timeout",
                    ),
                ),
                (
                    "backoff",
                    models.JSONField(
                        blank=True,
                        help_text="Waits between attempts. Empty: those of the job type.",
                        null=True,
                        verbose_name="backoff",
                    ),
                ),
                (
                    "crashes",
                    models.IntegerField(
                        db_default=0,
                        help_text="Attempts that ended because their worker died.",
                        verbose_name="crashes",
                    ),
                ),
                (
                    "started_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="started at"
                    ),
                ),
                (
                    "limit_key",
                    models.CharField(
                        blank=True,
                        db_collation="C",
                        help_text="The limit and the key that the job counts against.",
                        max_length=260,
                        null=True,
                        verbose_name="limit key",
                    ),
                ),
                (
                    "weight",
                    models.IntegerField(
                        blank=True,
                        help_text="The job's weight in weighted rates. Empty: from its data.",
                        null=True,
                        verbose_name="weight",
                    ),
                ),
                (
                    "replay_of",
                    models.UUIDField(
                        blank=True,
                        help_text="The archived job that this one repeats.",
                        null=True,
                        verbose_name="replay of",
                    ),
                ),
                (
                    "root_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The first job in a chain of replays.",
                        null=True,
                        verbose_name="root",
                    ),
                ),
                (
                    "bulk_operation_id",
                    models.UUIDField(
                        blank=True, null=True, verbose_name="bulk operation"
                    ),
                ),
                (
                    "enqueued_by",
                    models.TextField(
                        blank=True,
                        null=True,
                        verbose_name="enqueued by",
                    ),
                ),
                ("tags", models.JSONField(blank=True, null=True, verbose_name="tags")),
                (
                    "metadata",
                    models.JSONField(
                        blank=True,
                        help_text="Stored with the job in addition to its data.",
                        null=True,
                        verbose_name="metadata",
                    ),
                ),
                (
                    "followers",
                    models.JSONField(
                        blank=True,
                        help_text="Jobs to enqueue when this one finishes, by its outcome.",
                        null=True,
                        verbose_name="followers",
                    ),
                ),
                (
                    "follows",
                    models.UUIDField(
                        blank=True,
                        help_text="The archived job whose end enqueued this one.",
                        null=True,
                        verbose_name="follows",
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("succeeded", "succeeded"),
                            ("failed", "failed"),
                            ("expired", "expired"),
                            ("cancelled", "cancelled"),
                        ],
                        max_length=10,
                        verbose_name="status",
                    ),
                ),
                (
                    "finished_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="finished at",
                    ),
                ),
                (
                    "wait_ms",
                    models.BigIntegerField(
                        help_text="Time from when the job was due to the start of its last attempt.",
                        null=True,
                        verbose_name="waited (ms)",
                    ),
                ),
                (
                    "run_ms",
                    models.BigIntegerField(
                        help_text="Duration of the last attempt.",
                        null=True,
                        verbose_name="ran (ms)",
                    ),
                ),
                (
                    "effective_max_attempts",
                    models.IntegerField(
                        blank=True,
                        help_text="The limit that applied when the job finished. Empty: unlimited, or not recorded, as for jobs that succeeded.",
                        null=True,
                        verbose_name="attempts allowed",
                    ),
                ),
                (
                    "worker",
                    models.CharField(
                        db_default="", max_length=200, verbose_name="worker"
                    ),
                ),
                (
                    "release",
                    models.CharField(
                        db_default="", max_length=100, verbose_name="release"
                    ),
                ),
                (
                    "result",
                    models.JSONField(blank=True, null=True, verbose_name="result"),
                ),
                (
                    "error_class",
                    models.CharField(
                        db_default="", max_length=200, verbose_name="error class"
                    ),
                ),
                (
                    "error_message",
                    models.TextField(db_default="", verbose_name="error message"),
                ),
                (
                    "fingerprint",
                    models.UUIDField(blank=True, null=True, verbose_name="fingerprint"),
                ),
                (
                    "erased_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When data of the job were erased. It is not replayed as it is.",
                        null=True,
                        verbose_name="erased at",
                    ),
                ),
                (
                    "job_type",
                    models.ForeignKey(
                        db_column="job_type",
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="archived_jobs",
                        to="jobqueue.jobtype",
                        verbose_name="job type",
                    ),
                ),
            ],
            options={
                "verbose_name": "archived job",
                "verbose_name_plural": "archived jobs",
                "permissions": [
                    ("replay_archivedjob", "Can replay archived jobs"),
                    ("prune_archivedjob", "Can delete archived jobs"),
                ],
                "abstract": False,
                "default_permissions": ("view",),
                "required_db_vendor": "postgresql",
                "indexes": [
                    models.Index(
                        fields=["finished_at", "id"], name="jobqueue_a_newest"
                    ),
                    models.Index(
                        fields=["job_type", "finished_at", "id"], name="jobqueue_a_type"
                    ),
                    models.Index(
                        condition=models.Q(("status", "succeeded"), _negated=True),
                        fields=["status", "finished_at", "id"],
                        name="jobqueue_a_unsuccessful",
                    ),
                    models.Index(
                        condition=models.Q(("status", "succeeded"), _negated=True),
                        fields=["job_type", "finished_at", "id"],
                        name="jobqueue_a_type_unsuccessful",
                    ),
                    models.Index(
                        condition=models.Q(("fingerprint__isnull", False)),
                        fields=["fingerprint", "finished_at", "id"],
                        name="jobqueue_a_fingerprint",
                    ),
                    models.Index(
                        models.F("replay_of"),
                        condition=models.Q(("replay_of__isnull", False)),
                        name="jobqueue_a_replay_of",
                    ),
                    models.Index(
                        models.F("bulk_operation_id"),
                        condition=models.Q(("bulk_operation_id__isnull", False)),
                        name="jobqueue_a_operation",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "status__in",
                                ["succeeded", "failed", "expired", "cancelled"],
                            )
                        ),
                        name="jobqueue_a_status",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="QueuedJob",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=django_jobqueue.models.fields.NewId(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                (
                    "data",
                    models.JSONField(
                        db_default={},
                        help_text="The arguments of the handler.",
                        verbose_name="data",
                    ),
                ),
                (
                    "run_after",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="run after",
                    ),
                ),
                (
                    "expires_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="expires at"
                    ),
                ),
                (
                    "expires_in",
                    models.DurationField(
                        blank=True,
                        help_text="From when the job was first due until it expires.",
                        null=True,
                        verbose_name="expires in",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        editable=False,
                        verbose_name="created at",
                    ),
                ),
                (
                    "attempts",
                    models.IntegerField(db_default=0, verbose_name="attempts"),
                ),
                (
                    "max_attempts",
                    models.IntegerField(
                        blank=True,
                        help_text="Empty: the limit of the job type.",
                        null=True,
                        verbose_name="max attempts",
                    ),
                ),
                (
                    "timeout",
                    models.DurationField(
                        blank=True,
                        help_text="Empty: the limit of the job type.",
                        null=True,
                        verbose_name="timeout",
                    ),
                ),
                (
                    "backoff",
                    models.JSONField(
                        blank=True,
                        help_text="Waits between attempts. Empty: those of the job type.",
                        null=True,
                        verbose_name="backoff",
                    ),
                ),
                (
                    "crashes",
                    models.IntegerField(
                        db_default=0,
                        help_text="Attempts that ended because their worker died.",
                        verbose_name="crashes",
                    ),
                ),
                (
                    "started_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="started at"
                    ),
                ),
                (
                    "limit_key",
                    models.CharField(
                        blank=True,
                        db_collation="C",
                        help_text="The limit and the key that the job counts against.",
                        max_length=260,
                        null=True,
                        verbose_name="limit key",
                    ),
                ),
                (
                    "weight",
                    models.IntegerField(
                        blank=True,
                        help_text="The job's weight in weighted rates. Empty: from its data.",
                        null=True,
                        verbose_name="weight",
                    ),
                ),
                (
                    "replay_of",
                    models.UUIDField(
                        blank=True,
                        help_text="The archived job that this one repeats.",
                        null=True,
                        verbose_name="replay of",
                    ),
                ),
                (
                    "root_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The first job in a chain of replays.",
                        null=True,
                        verbose_name="root",
                    ),
                ),
                (
                    "bulk_operation_id",
                    models.UUIDField(
                        blank=True, null=True, verbose_name="bulk operation"
                    ),
                ),
                (
                    "enqueued_by",
                    models.TextField(
                        blank=True,
                        null=True,
                        verbose_name="enqueued by",
                    ),
                ),
                ("tags", models.JSONField(blank=True, null=True, verbose_name="tags")),
                (
                    "metadata",
                    models.JSONField(
                        blank=True,
                        help_text="Stored with the job in addition to its data.",
                        null=True,
                        verbose_name="metadata",
                    ),
                ),
                (
                    "followers",
                    models.JSONField(
                        blank=True,
                        help_text="Jobs to enqueue when this one finishes, by its outcome.",
                        null=True,
                        verbose_name="followers",
                    ),
                ),
                (
                    "follows",
                    models.UUIDField(
                        blank=True,
                        help_text="The archived job whose end enqueued this one.",
                        null=True,
                        verbose_name="follows",
                    ),
                ),
                (
                    "queue",
                    models.CharField(
                        db_collation="C",
                        db_default="",
                        max_length=100,
                        verbose_name="queue",
                    ),
                ),
                (
                    "priority",
                    models.SmallIntegerField(
                        db_default=32767,
                        help_text="-100 to 100; higher runs first.",
                        verbose_name="priority",
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[("queued", "queued"), ("running", "running")],
                        db_default="queued",
                        max_length=10,
                        verbose_name="status",
                    ),
                ),
                (
                    "fence",
                    models.BigIntegerField(
                        db_default=0,
                        help_text="Number of the claim. Only its worker may write about the running job.",
                        verbose_name="fence",
                    ),
                ),
                (
                    "worker_id",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Empty unless running.",
                        null=True,
                        verbose_name="worker",
                    ),
                ),
                (
                    "quarantined",
                    models.BooleanField(
                        db_default=False,
                        help_text="Runs in a process of its own, because its workers died.",
                        verbose_name="quarantined",
                    ),
                ),
                (
                    "cancel_requested_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="cancel requested at"
                    ),
                ),
                (
                    "cancel_reason",
                    models.TextField(
                        blank=True,
                        help_text="The reason given with the cancel request.",
                        null=True,
                        verbose_name="cancel reason",
                    ),
                ),
                (
                    "unique_key",
                    models.UUIDField(
                        blank=True,
                        help_text="While this job is in the queue, no other job can have the same key.",
                        null=True,
                        verbose_name="unique key",
                    ),
                ),
                (
                    "unique_until_started",
                    models.BooleanField(
                        db_default=False,
                        help_text="The key becomes free when the job is claimed, not when it finishes.",
                        verbose_name="unique until started",
                    ),
                ),
                (
                    "awaited",
                    models.BooleanField(
                        db_default=False,
                        help_text="Someone waits for this job and is notified when it finishes.",
                        verbose_name="awaited",
                    ),
                ),
                (
                    "announce",
                    models.BooleanField(
                        db_default=True,
                        help_text="Idle workers are notified when the INSERT commits.",
                        verbose_name="announce",
                    ),
                ),
                (
                    "job_type",
                    models.ForeignKey(
                        db_column="job_type",
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queued_jobs",
                        to="jobqueue.jobtype",
                        verbose_name="job type",
                    ),
                ),
            ],
            options={
                "verbose_name": "queued job",
                "verbose_name_plural": "queued jobs",
                "permissions": [
                    ("cancel_queuedjob", "Can cancel queued jobs"),
                    ("reschedule_queuedjob", "Can reschedule queued jobs"),
                    ("release_queuedjob", "Can release running jobs"),
                    ("free_unique_key", "Can free unique keys of jobs"),
                    ("view_job_data", "Can view data and results of jobs"),
                    ("reveal_job_data", "Can view secrets in data and results of jobs"),
                    (
                        "edit_job_data",
                        "Can edit data of jobs, and replay jobs with other data",
                    ),
                ],
                "abstract": False,
                "default_permissions": ("view",),
                "required_db_vendor": "postgresql",
                "indexes": [
                    models.Index(
                        models.F("queue"),
                        models.F("priority"),
                        models.F("job_type"),
                        models.F("run_after"),
                        models.F("id"),
                        condition=models.Q(
                            ("status", "queued"), ("quarantined", False)
                        ),
                        name="jobqueue_q_ready",
                    ),
                    models.Index(
                        models.F("job_type"),
                        models.F("worker_id"),
                        condition=models.Q(("status", "running")),
                        name="jobqueue_q_running",
                    ),
                    models.Index(
                        models.F("queue"),
                        models.F("priority"),
                        models.F("job_type"),
                        models.F("limit_key"),
                        models.F("run_after"),
                        models.F("id"),
                        condition=models.Q(
                            ("status", "queued"),
                            ("limit_key__isnull", False),
                            ("quarantined", False),
                        ),
                        name="jobqueue_q_keyed",
                    ),
                    models.Index(
                        models.F("limit_key"),
                        condition=models.Q(
                            ("limit_key__isnull", False), ("status", "running")
                        ),
                        name="jobqueue_q_keyed_running",
                    ),
                    models.Index(
                        models.F("limit_key"),
                        models.F("run_after"),
                        models.F("id"),
                        condition=models.Q(
                            ("status", "queued"),
                            ("limit_key__isnull", False),
                            models.Q(("fence", 0), _negated=True),
                        ),
                        name="jobqueue_q_keyed_started",
                    ),
                    models.Index(
                        models.F("expires_at"),
                        condition=models.Q(
                            ("status", "queued"), ("expires_at__isnull", False)
                        ),
                        name="jobqueue_q_expires",
                    ),
                    models.Index(
                        models.F("run_after"),
                        models.F("id"),
                        condition=models.Q(("status", "queued"), ("quarantined", True)),
                        name="jobqueue_q_quarantined",
                    ),
                    models.Index(
                        models.F("replay_of"),
                        condition=models.Q(("replay_of__isnull", False)),
                        name="jobqueue_q_replay_of",
                    ),
                    models.Index(
                        models.F("bulk_operation_id"),
                        condition=models.Q(("bulk_operation_id__isnull", False)),
                        name="jobqueue_q_operation",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["queued", "running"])),
                        name="jobqueue_q_status",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("priority__range", (-100, 100))),
                        name="jobqueue_q_priority",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "run_after__range",
                                (
                                    datetime.datetime(
                                        1, 1, 3, 0, 0, tzinfo=datetime.UTC
                                    ),
                                    datetime.datetime(
                                        9999, 12, 30, 0, 0, tzinfo=datetime.UTC
                                    ),
                                ),
                            ),
                            (
                                "created_at__range",
                                (
                                    datetime.datetime(
                                        1, 1, 3, 0, 0, tzinfo=datetime.UTC
                                    ),
                                    datetime.datetime(
                                        9999, 12, 30, 0, 0, tzinfo=datetime.UTC
                                    ),
                                ),
                            ),
                            models.Q(
                                ("expires_at__isnull", True),
                                (
                                    "expires_at__range",
                                    (
                                        datetime.datetime(
                                            1, 1, 3, 0, 0, tzinfo=datetime.UTC
                                        ),
                                        datetime.datetime(
                                            9999,
                                            12,
                                            30,
                                            0,
                                            0,
                                            tzinfo=datetime.UTC,
                                        ),
                                    ),
                                ),
                                _connector="OR",
                            ),
                        ),
                        name="jobqueue_q_moments",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("timeout__isnull", True),
                            models.Q(
                                ("timeout__gt", datetime.timedelta(0)),
                                ("timeout__lte", datetime.timedelta(days=36500)),
                            ),
                            _connector="OR",
                        ),
                        name="jobqueue_q_timeout",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("unique_key__isnull", False)),
                        fields=("unique_key",),
                        name="jobqueue_q_unique",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="time",
                    ),
                ),
                ("by", models.TextField(verbose_name="by")),
                ("verb", models.CharField(max_length=100, verbose_name="act")),
                ("count", models.IntegerField(db_default=1, verbose_name="count")),
                ("about", models.JSONField(db_default=[], verbose_name="about")),
                ("details", models.JSONField(db_default={}, verbose_name="details")),
            ],
            options={
                "verbose_name": "audit entry",
                "verbose_name_plural": "audit entries",
                "default_permissions": ("view",),
                "required_db_vendor": "postgresql",
                "indexes": [
                    models.Index(fields=["at", "id"], name="jobqueue_audit_newest"),
                    models.Index(fields=["by", "at", "id"], name="jobqueue_audit_by"),
                    models.Index(
                        fields=["verb", "at", "id"], name="jobqueue_audit_verb"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Overview",
            fields=[],
            options={
                "verbose_name": "overview",
                "verbose_name_plural": " Overview",
                "default_permissions": ("view",),
                "required_db_vendor": "postgresql",
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("jobqueue.queue",),
        ),
        migrations.CreateModel(
            name="KeyLimit",
            fields=[
                (
                    "name",
                    models.CharField(
                        db_collation="C",
                        max_length=100,
                        primary_key=True,
                        serialize=False,
                        verbose_name="name",
                    ),
                ),
                (
                    "concurrency",
                    models.IntegerField(
                        blank=True,
                        help_text="Jobs of one key running at once. Empty: unlimited.",
                        null=True,
                        verbose_name="concurrency",
                    ),
                ),
                (
                    "rate",
                    models.CharField(
                        blank=True,
                        help_text="How many jobs of one key start in any window. Empty: unlimited.",
                        max_length=100,
                        null=True,
                        verbose_name="rate",
                    ),
                ),
                (
                    "strict",
                    models.BooleanField(
                        db_default=False,
                        help_text="A job that waits for a retry goes before its key's other jobs.",
                        verbose_name="strict order",
                    ),
                ),
                (
                    "declared_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="declared at",
                    ),
                ),
                (
                    "concurrency_override",
                    models.IntegerField(
                        blank=True,
                        help_text="Jobs of one key running at once; 0 holds all, -1 is unlimited.",
                        null=True,
                        verbose_name="concurrency",
                    ),
                ),
                (
                    "rate_override",
                    models.CharField(
                        blank=True,
                        help_text="Starts of one key in any window, for example: 100/m, or 10/s burst 3, or unlimited.",
                        max_length=100,
                        null=True,
                        verbose_name="rate",
                    ),
                ),
            ],
            options={
                "verbose_name": "limit by key",
                "verbose_name_plural": "limits by key",
                "ordering": ["name"],
                "default_permissions": ("view", "change"),
                "required_db_vendor": "postgresql",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("name", ""), _negated=True),
                        name="jobqueue_k_name",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("concurrency__isnull", True),
                            ("concurrency__gte", 0),
                            _connector="OR",
                        ),
                        name="jobqueue_k_concurrency",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("concurrency_override__isnull", True),
                            ("concurrency_override__gte", -1),
                            _connector="OR",
                        ),
                        name="jobqueue_k_concurrency_override",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("rate__isnull", True),
                                (
                                    "rate__regex",
                                    "^[1-9][0-9]{0,9}/[0-9]{1,10}([.][0-9]{1,6})?s burst [1-9][0-9]{0,9}$",
                                ),
                                _connector="OR",
                            ),
                            models.Q(
                                ("rate_override__isnull", True),
                                ("rate_override", "unlimited"),
                                (
                                    "rate_override__regex",
                                    "^[1-9][0-9]{0,9}/[0-9]{1,10}([.][0-9]{1,6})?s burst [1-9][0-9]{0,9}$",
                                ),
                                _connector="OR",
                            ),
                        ),
                        name="jobqueue_k_rate",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Bucket",
            fields=[
                (
                    "limit_key",
                    models.CharField(
                        db_collation="C",
                        max_length=260,
                        primary_key=True,
                        serialize=False,
                        verbose_name="key",
                    ),
                ),
                (
                    "full_at",
                    django_jobqueue.models.fields.UTCDateTimeField(
                        verbose_name="full at"
                    ),
                ),
                (
                    "changed_at",
                    django_jobqueue.models.fields.UTCDateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="changed at",
                    ),
                ),
            ],
            options={
                "verbose_name": "bucket of a rate",
                "verbose_name_plural": "buckets of rates",
                "default_permissions": (),
                "required_db_vendor": "postgresql",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "full_at__range",
                                (
                                    datetime.datetime(
                                        1, 1, 3, 0, 0, tzinfo=datetime.UTC
                                    ),
                                    datetime.datetime(
                                        9999, 12, 30, 0, 0, tzinfo=datetime.UTC
                                    ),
                                ),
                            )
                        ),
                        name="jobqueue_b_full_at",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="KeyOverride",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "limit_key",
                    models.CharField(
                        db_collation="C",
                        max_length=260,
                        unique=True,
                        verbose_name="key",
                    ),
                ),
                (
                    "concurrency",
                    models.IntegerField(
                        blank=True,
                        help_text="Jobs of this key running at once; 0 holds it, -1 is unlimited. Empty: as of all keys.",
                        null=True,
                        verbose_name="concurrency",
                    ),
                ),
                (
                    "rate",
                    models.CharField(
                        blank=True,
                        help_text="Starts of this key in any window. Empty: as of all keys.",
                        max_length=100,
                        null=True,
                        verbose_name="rate",
                    ),
                ),
                (
                    "share",
                    models.SmallIntegerField(
                        blank=True,
                        help_text="Jobs of this key in each round of the keys. Empty: 1.",
                        null=True,
                        verbose_name="share",
                    ),
                ),
            ],
            options={
                "verbose_name": "override of a key",
                "verbose_name_plural": "overrides of keys",
                "default_permissions": (),
                "required_db_vendor": "postgresql",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("concurrency__isnull", True),
                            ("concurrency__gte", -1),
                            _connector="OR",
                        ),
                        name="jobqueue_ko_concurrency",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("rate__isnull", True),
                            ("rate", "unlimited"),
                            (
                                "rate__regex",
                                "^[1-9][0-9]{0,9}/[0-9]{1,10}([.][0-9]{1,6})?s burst [1-9][0-9]{0,9}$",
                            ),
                            _connector="OR",
                        ),
                        name="jobqueue_ko_rate",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("share__isnull", True),
                            ("share__range", (1, 1000)),
                            _connector="OR",
                        ),
                        name="jobqueue_ko_share",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Host",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=200, verbose_name="name")),
                ("host", models.CharField(max_length=200, verbose_name="host")),
                (
                    "identity",
                    models.CharField(
                        db_default="", max_length=200, verbose_name="identity"
                    ),
                ),
                (
                    "embedded",
                    models.BooleanField(db_default=False, verbose_name="embedded"),
                ),
                (
                    "release",
                    models.CharField(
                        db_default="", max_length=100, verbose_name="release"
                    ),
                ),
                (
                    "processes",
                    models.IntegerField(db_default=0, verbose_name="processes"),
                ),
                ("threads", models.IntegerField(db_default=0, verbose_name="threads")),
                (
                    "async_slots",
                    models.IntegerField(db_default=0, verbose_name="async slots"),
                ),
                (
                    "queues",
                    models.JSONField(blank=True, null=True, verbose_name="queues"),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "running"),
                            ("parked", "parked"),
                            ("draining", "draining"),
                            ("standby", "standing by"),
                            ("stopping", "stopping"),
                            ("restarting", "restarting"),
                            ("stopped", "stopped"),
                            ("lost", "lost"),
                        ],
                        db_default="running",
                        max_length=10,
                        verbose_name="state",
                    ),
                ),
                (
                    "started_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="started at",
                    ),
                ),
                (
                    "renewed_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="renewed at",
                    ),
                ),
                (
                    "lease_until",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="lease until",
                    ),
                ),
                (
                    "stopped_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="stopped at"
                    ),
                ),
                ("desired", models.JSONField(db_default={}, verbose_name="asked for")),
                ("applied", models.JSONField(db_default={}, verbose_name="applied")),
                ("error", models.TextField(db_default="", verbose_name="error")),
            ],
            options={
                "verbose_name": "host",
                "verbose_name_plural": "hosts",
                "default_permissions": ("view",),
                "required_db_vendor": "postgresql",
            },
        ),
        migrations.CreateModel(
            name="ArchivedCount",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("job_type", models.CharField(max_length=100, verbose_name="job type")),
                ("queue", models.CharField(max_length=100, verbose_name="queue")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("succeeded", "succeeded"),
                            ("failed", "failed"),
                            ("expired", "expired"),
                            ("cancelled", "cancelled"),
                        ],
                        max_length=10,
                        verbose_name="status",
                    ),
                ),
                ("jobs", models.IntegerField(verbose_name="jobs")),
            ],
            options={
                "verbose_name": "count of archived jobs",
                "verbose_name_plural": "counts of archived jobs",
                "default_permissions": (),
                "required_db_vendor": "postgresql",
            },
        ),
        migrations.CreateModel(
            name="DatabaseIdentity",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(
                        primary_key=True, serialize=False, verbose_name="id"
                    ),
                ),
                ("identity", models.TextField(verbose_name="identity")),
                (
                    "server_version",
                    models.PositiveIntegerField(verbose_name="version of the server"),
                ),
                (
                    "written_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="written at",
                    ),
                ),
            ],
            options={
                "verbose_name": "identity of the database",
                "verbose_name_plural": "identities of the database",
                "default_permissions": (),
                "required_db_vendor": "postgresql",
            },
            managers=[("for_fixtures", models.manager.Manager())],
        ),
        migrations.CreateModel(
            name="Figures",
            fields=[
                (
                    "name",
                    models.CharField(
                        max_length=100,
                        primary_key=True,
                        serialize=False,
                        verbose_name="name",
                    ),
                ),
                ("taken_at", models.DateTimeField(verbose_name="as of")),
                ("figures", models.JSONField(verbose_name="figures")),
            ],
            options={
                "verbose_name": "figures",
                "verbose_name_plural": "figures",
                "default_permissions": (),
                "required_db_vendor": "postgresql",
            },
        ),
        migrations.CreateModel(
            name="Total",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "job_type",
                        "queue",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("job_type", models.CharField(max_length=100, verbose_name="job type")),
                ("queue", models.CharField(max_length=100, verbose_name="queue")),
                (
                    "attempts_succeeded",
                    models.BigIntegerField(
                        db_default=0, verbose_name="succeeded attempts"
                    ),
                ),
                (
                    "attempts_failed",
                    models.BigIntegerField(
                        db_default=0, verbose_name="failed attempts"
                    ),
                ),
                (
                    "attempts_retried",
                    models.BigIntegerField(
                        db_default=0, verbose_name="retried attempts"
                    ),
                ),
                (
                    "attempts_snoozed",
                    models.BigIntegerField(
                        db_default=0, verbose_name="snoozed attempts"
                    ),
                ),
                (
                    "attempts_cancelled",
                    models.BigIntegerField(
                        db_default=0, verbose_name="cancelled attempts"
                    ),
                ),
                (
                    "attempts_released",
                    models.BigIntegerField(
                        db_default=0, verbose_name="released attempts"
                    ),
                ),
                (
                    "attempts_crashed",
                    models.BigIntegerField(
                        db_default=0, verbose_name="crashed attempts"
                    ),
                ),
                (
                    "jobs_succeeded",
                    models.BigIntegerField(db_default=0, verbose_name="succeeded jobs"),
                ),
                (
                    "jobs_failed",
                    models.BigIntegerField(db_default=0, verbose_name="failed jobs"),
                ),
                (
                    "jobs_expired",
                    models.BigIntegerField(db_default=0, verbose_name="expired jobs"),
                ),
                (
                    "jobs_cancelled",
                    models.BigIntegerField(db_default=0, verbose_name="cancelled jobs"),
                ),
                (
                    "run_ms",
                    models.BigIntegerField(db_default=0, verbose_name="run time (ms)"),
                ),
                (
                    "wait_ms",
                    models.BigIntegerField(db_default=0, verbose_name="wait (ms)"),
                ),
                (
                    "attempts_sum",
                    models.BigIntegerField(
                        db_default=0, verbose_name="attempts of jobs"
                    ),
                ),
                (
                    "run_histogram",
                    models.JSONField(db_default=[], verbose_name="run times"),
                ),
                (
                    "wait_histogram",
                    models.JSONField(db_default=[], verbose_name="waits"),
                ),
                (
                    "attempts_histogram",
                    models.JSONField(db_default=[], verbose_name="numbers of attempts"),
                ),
                (
                    "changed_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="changed at",
                    ),
                ),
            ],
            options={
                "verbose_name": "total",
                "verbose_name_plural": "totals",
                "default_permissions": (),
                "required_db_vendor": "postgresql",
            },
        ),
        *(migrations.RunSQL(*pair) for pair in sql.AFTER_TABLES),
    ]
