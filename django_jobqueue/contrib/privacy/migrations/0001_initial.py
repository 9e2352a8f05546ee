"""The table of erasures."""

from django.db import migrations, models

import django_jobqueue.models.fields
from django_jobqueue.migrations._postgresql import Migration as PostgreSQLMigration


class Migration(PostgreSQLMigration):
    initial = True

    dependencies = [("jobqueue", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Erasure",
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
                    "act",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("erase", "erase the values"),
                            ("delete", "delete the rows"),
                        ],
                        db_default="",
                        max_length=10,
                        verbose_name="act",
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
                (
                    "value",
                    models.TextField(
                        db_default="",
                        help_text="Cleared when the erasure ends.",
                        verbose_name="value",
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        db_default="",
                        help_text="Only values under this key of data. Empty: everywhere.",
                        max_length=200,
                        verbose_name="key",
                    ),
                ),
                (
                    "fingerprint",
                    models.CharField(
                        help_text="Keyed hash of the value. The key is SECRET_KEY.",
                        max_length=64,
                        verbose_name="fingerprint",
                    ),
                ),
                (
                    "reason",
                    models.TextField(blank=True, db_default="", verbose_name="reason"),
                ),
                (
                    "counted",
                    models.JSONField(
                        db_default={},
                        help_text="Rows that contain the value, by table, with the first ones.",
                        verbose_name="counted",
                    ),
                ),
                (
                    "total",
                    models.BigIntegerField(
                        help_text="Number of rows that contain the value. Empty: not all counted.",
                        null=True,
                        verbose_name="total",
                    ),
                ),
                (
                    "examined",
                    models.BigIntegerField(db_default=0, verbose_name="examined"),
                ),
                ("changed", models.JSONField(db_default={}, verbose_name="changed")),
                (
                    "remaining",
                    models.JSONField(
                        db_default={},
                        help_text="Rows that the last pass could not change, by reason.",
                        verbose_name="remaining",
                    ),
                ),
                (
                    "passes",
                    models.IntegerField(
                        db_default=0,
                        help_text="Complete passes through all tables.",
                        verbose_name="passes",
                    ),
                ),
                (
                    "position",
                    models.JSONField(blank=True, null=True, verbose_name="position"),
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
                "verbose_name": "erasure",
                "verbose_name_plural": "erasures",
                "permissions": [
                    ("erase_personal_data", "Can find and erase personal data")
                ],
                "default_permissions": ("view",),
                "required_db_vendor": "postgresql",
                "indexes": [
                    models.Index(
                        models.OrderBy(models.F("created_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="jobqueue_e_newest",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("value", ""),
                            models.Q(("state__in", ("done", "stopped")), _negated=True),
                            _connector="OR",
                        ),
                        name="jobqueue_e_cleared",
                    )
                ],
            },
        ),
    ]
