"""The tables of schedules and of their firings."""

import datetime

import django.db.models.deletion
from django.db import migrations, models

import django_jobqueue.models.fields
from django_jobqueue.contrib.schedules.apps import SchedulesConfig
from django_jobqueue.migrations._postgresql import Migration as PostgreSQLMigration


class Migration(PostgreSQLMigration):
    initial = True

    dependencies = [("jobqueue", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Schedule",
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
                    "origin",
                    models.CharField(
                        choices=[("code", "code"), ("admin", "admin")],
                        db_default="admin",
                        max_length=5,
                        verbose_name="origin",
                    ),
                ),
                (
                    "rule",
                    models.CharField(
                        help_text="“cron 30 2 * * *”, or “every 300” for each five minutes.",
                        max_length=200,
                        verbose_name="rule",
                    ),
                ),
                (
                    "time_zone",
                    models.CharField(max_length=64, verbose_name="time zone"),
                ),
                (
                    "data",
                    models.JSONField(blank=True, db_default={}, verbose_name="data"),
                ),
                (
                    "options",
                    models.JSONField(
                        blank=True,
                        db_default={},
                        help_text="Of its jobs.",
                        verbose_name="options",
                    ),
                ),
                (
                    "missed",
                    models.CharField(
                        choices=[
                            ("once", "one job, for the newest"),
                            ("skip", "no job"),
                            ("all", "a job for each"),
                        ],
                        db_default="once",
                        max_length=4,
                        verbose_name="missed firings",
                    ),
                ),
                (
                    "missed_within",
                    models.DurationField(
                        db_default=datetime.timedelta(days=1),
                        help_text="Firings missed longer ago are dropped.",
                        verbose_name="missed within",
                    ),
                ),
                (
                    "missed_most",
                    models.SmallIntegerField(
                        db_default=100,
                        help_text="The most jobs enqueued at once.",
                        verbose_name="most missed",
                    ),
                ),
                (
                    "overlap",
                    models.CharField(
                        choices=[
                            ("allow", "enqueue another job"),
                            ("skip", "skip the firing"),
                        ],
                        db_default="allow",
                        max_length=5,
                        verbose_name="overlap",
                    ),
                ),
                (
                    "jitter",
                    models.DurationField(
                        blank=True,
                        help_text="Jobs are due up to this much later than their moment.",
                        null=True,
                        verbose_name="jitter",
                    ),
                ),
                (
                    "starts_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="starts at"
                    ),
                ),
                (
                    "ends_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="ends at"),
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
                        blank=True, null=True, verbose_name="declared at"
                    ),
                ),
                (
                    "gone_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="Since when no code declares it. It does not fire.",
                        null=True,
                        verbose_name="gone at",
                    ),
                ),
                (
                    "rule_override",
                    models.CharField(
                        blank=True, max_length=200, null=True, verbose_name="rule"
                    ),
                ),
                (
                    "time_zone_override",
                    models.CharField(
                        blank=True, max_length=64, null=True, verbose_name="time zone"
                    ),
                ),
                (
                    "data_override",
                    models.JSONField(blank=True, null=True, verbose_name="data"),
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
                    "next_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="next firing"
                    ),
                ),
                ("planned_for", models.TextField(db_default="", editable=False)),
                (
                    "fired_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="last firing"
                    ),
                ),
                (
                    "job_type",
                    models.ForeignKey(
                        db_column="job_type",
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="jobqueue.jobtype",
                        verbose_name="job type",
                    ),
                ),
            ],
            options={
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
                "ordering": ["name"],
                "permissions": [
                    ("pause_schedule", "Can pause and resume schedules"),
                    ("run_schedule", "Can run schedules now"),
                ],
                "default_permissions": ("view", "add", "change", "delete"),
                "required_db_vendor": "postgresql",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("name", ""), _negated=True),
                            models.Q(("rule", ""), _negated=True),
                        ),
                        name="jobqueue_s_named",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("origin__in", ["code", "admin"]),
                            ("missed__in", ["once", "skip", "all"]),
                            ("overlap__in", ["allow", "skip"]),
                        ),
                        name="jobqueue_s_words",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("missed_most__gt", 0)),
                        name="jobqueue_s_missed_most",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "ends_at__range",
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
                                "next_at__range",
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
                                "starts_at__range",
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
                        name="jobqueue_s_moments",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Firing",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "schedule",
                        "fires_at",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "schedule",
                    models.CharField(
                        db_collation="C", max_length=100, verbose_name="schedule"
                    ),
                ),
                ("fires_at", models.DateTimeField(verbose_name="moment")),
                ("job_id", models.UUIDField(null=True, verbose_name="job")),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("fired", "fired"),
                            ("late", "fired late"),
                            ("skipped", "skipped"),
                            ("missed", "missed"),
                            ("manual", "run by hand"),
                        ],
                        max_length=8,
                        verbose_name="outcome",
                    ),
                ),
                ("number", models.IntegerField(db_default=1, verbose_name="number")),
                ("by", models.TextField(db_default="", verbose_name="by")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="created at",
                    ),
                ),
            ],
            options={
                "verbose_name": "firing",
                "verbose_name_plural": "firings",
                "default_permissions": (),
                "required_db_vendor": "postgresql",
                "indexes": [
                    models.Index(fields=["created_at"], name="jobqueue_firing_made"),
                    models.Index(fields=["job_id"], name="jobqueue_firing_job"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "outcome__in",
                                ["fired", "late", "skipped", "missed", "manual"],
                            )
                        ),
                        name="jobqueue_firing_outcome",
                    )
                ],
            },
        ),
        migrations.RunSQL(SchedulesConfig.storage, migrations.RunSQL.noop),
    ]
