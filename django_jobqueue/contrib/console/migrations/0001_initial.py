"""The tables of saved views and of searches through all jobs."""

from django.db import migrations, models

import django_jobqueue.models.fields
from django_jobqueue.migrations._postgresql import Migration as PostgreSQLMigration


class Migration(PostgreSQLMigration):
    initial = True

    dependencies = [("jobqueue", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="SavedView",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("list", models.CharField(max_length=20, verbose_name="list")),
                ("name", models.CharField(max_length=60, verbose_name="name")),
                ("query", models.CharField(max_length=2000, verbose_name="query")),
                ("owner", models.TextField(verbose_name="owner")),
                (
                    "is_shared",
                    models.BooleanField(db_default=False, verbose_name="shared"),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="created",
                    ),
                ),
            ],
            options={
                "verbose_name": "saved view",
                "verbose_name_plural": "saved views",
                "permissions": [
                    ("share_savedview", "Can share saved views, and change shared ones")
                ],
                "default_permissions": ("add",),
                "required_db_vendor": "postgresql",
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_shared", True)),
                        fields=["list"],
                        name="jobqueue_v_shared",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "list", "name"), name="jobqueue_v_name"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="JobSearch",
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
                ("query", models.TextField(verbose_name="search")),
                ("selections", models.JSONField(verbose_name="selections")),
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
                    "place",
                    models.JSONField(
                        blank=True,
                        help_text="The table, and the key of the last job examined there.",
                        null=True,
                        verbose_name="place",
                    ),
                ),
                (
                    "oldest",
                    models.DateTimeField(
                        blank=True,
                        help_text="When the oldest archived job finished, as the search began.",
                        null=True,
                        verbose_name="oldest",
                    ),
                ),
                (
                    "examined",
                    models.BigIntegerField(db_default=0, verbose_name="examined"),
                ),
                ("matched", models.JSONField(db_default={}, verbose_name="found")),
                (
                    "newest",
                    models.JSONField(
                        db_default={},
                        help_text="Ids of the newest jobs found, by table, at most 1,000 of each.",
                        verbose_name="newest",
                    ),
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
                "verbose_name": "search",
                "verbose_name_plural": "searches",
                "permissions": [
                    ("start_jobsearch", "Can start and stop searches through all jobs")
                ],
                "default_permissions": ("view",),
                "required_db_vendor": "postgresql",
                "indexes": [
                    models.Index(
                        models.OrderBy(models.F("created_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="jobqueue_js_newest",
                    )
                ],
            },
        ),
    ]
