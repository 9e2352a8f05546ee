"""The table of tokens."""

import datetime

from django.db import migrations, models

import django_jobqueue.models.fields
from django_jobqueue.migrations._postgresql import Migration as PostgreSQLMigration


class Migration(PostgreSQLMigration):
    initial = True

    dependencies = [("jobqueue", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Token",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100, verbose_name="name")),
                (
                    "digest",
                    models.CharField(
                        help_text="SHA-256 of the secret.",
                        max_length=64,
                        verbose_name="digest",
                    ),
                ),
                (
                    "scopes",
                    models.JSONField(
                        db_default=[],
                        help_text="What it allows.",
                        verbose_name="scopes",
                    ),
                ),
                (
                    "job_types",
                    models.JSONField(
                        db_default=[],
                        help_text="Patterns of job types. Empty: every job type.",
                        verbose_name="job types",
                    ),
                ),
                (
                    "queues",
                    models.JSONField(
                        db_default=[],
                        help_text="Patterns of queues. Empty: every queue.",
                        verbose_name="queues",
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
                    "created_by",
                    models.TextField(db_default="", verbose_name="created by"),
                ),
                (
                    "expires_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="expires at"
                    ),
                ),
                (
                    "last_used_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="To the hour.",
                        null=True,
                        verbose_name="last used",
                    ),
                ),
                (
                    "revoked_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="revoked at"
                    ),
                ),
                (
                    "revoked_by",
                    models.TextField(db_default="", verbose_name="revoked by"),
                ),
            ],
            options={
                "verbose_name": "token",
                "verbose_name_plural": "tokens",
                "permissions": [("manage_token", "Can create and revoke tokens")],
                "default_permissions": ("view",),
                "required_db_vendor": "postgresql",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("revoked_at__isnull", True)),
                        fields=("name",),
                        name="jobqueue_tk_name",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "expires_at__range",
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
                        name="jobqueue_tk_expires_at",
                    ),
                ],
            },
        ),
    ]
