"""The tables of alerts and their deliveries."""

import django.db.models.deletion
from django.db import migrations, models

import django_jobqueue.models.fields
from django_jobqueue.migrations._postgresql import Migration as PostgreSQLMigration


class Migration(PostgreSQLMigration):
    initial = True

    dependencies = [("jobqueue", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Alert",
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
                    "condition",
                    models.CharField(
                        choices=[
                            ("failure_group", "new failure"),
                            ("regression", "resolved failure is back"),
                            ("backlog", "backlog"),
                            ("no_worker", "no worker"),
                            ("unserved", "not served"),
                            ("failing", "failing job type"),
                            ("crashing", "crashing job type"),
                            ("old_transaction", "old transaction"),
                        ],
                        max_length=20,
                        verbose_name="condition",
                    ),
                ),
                (
                    "subject",
                    models.CharField(
                        db_default="",
                        help_text="The queue, job type or failure group concerned.",
                        max_length=250,
                        verbose_name="subject",
                    ),
                ),
                ("text", models.TextField(db_default="", verbose_name="text")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("reported", "reported"),
                            ("firing", "firing"),
                            ("resolved", "resolved"),
                        ],
                        db_default="firing",
                        max_length=10,
                        verbose_name="state",
                    ),
                ),
                (
                    "fired_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="fired at",
                    ),
                ),
                (
                    "last_seen",
                    models.DateTimeField(
                        blank=True,
                        help_text="When the condition last held.",
                        null=True,
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
                    "pending",
                    models.CharField(
                        choices=[
                            ("fired", "fired"),
                            ("repeated", "still firing"),
                            ("resolved", "resolved"),
                        ],
                        db_default="",
                        help_text="The news not yet handed to the channels.",
                        max_length=10,
                        verbose_name="pending",
                    ),
                ),
                (
                    "announced",
                    models.CharField(
                        choices=[
                            ("fired", "fired"),
                            ("repeated", "still firing"),
                            ("resolved", "resolved"),
                        ],
                        db_default="",
                        help_text="The last news that was handed to the channels.",
                        max_length=10,
                        verbose_name="announced",
                    ),
                ),
                (
                    "announced_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When the channels last received that it fires.",
                        null=True,
                        verbose_name="announced at",
                    ),
                ),
            ],
            options={
                "verbose_name": "alert",
                "verbose_name_plural": "alerts",
                "default_permissions": ("view",),
                "required_db_vendor": "postgresql",
                "indexes": [
                    models.Index(
                        models.OrderBy(models.F("fired_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="jobqueue_al_newest",
                    ),
                    models.Index(
                        models.F("id"),
                        condition=models.Q(("pending", ""), _negated=True),
                        name="jobqueue_al_pending",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "firing")),
                        fields=("condition", "subject"),
                        name="jobqueue_al_firing",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AlertDelivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "event",
                    models.CharField(
                        choices=[
                            ("fired", "fired"),
                            ("repeated", "still firing"),
                            ("resolved", "resolved"),
                        ],
                        max_length=10,
                        verbose_name="event",
                    ),
                ),
                ("channel", models.CharField(max_length=200, verbose_name="channel")),
                (
                    "send_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The same for all alerts sent together, and in each attempt.",
                        null=True,
                        verbose_name="send id",
                    ),
                ),
                (
                    "planned_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When it received its send id.",
                        null=True,
                        verbose_name="planned at",
                    ),
                ),
                (
                    "attempts",
                    models.IntegerField(db_default=0, verbose_name="attempts"),
                ),
                (
                    "next_attempt_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="next attempt"
                    ),
                ),
                (
                    "sent_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="sent at"),
                ),
                (
                    "given_up_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="given up at"
                    ),
                ),
                (
                    "error",
                    models.CharField(
                        db_default="", max_length=200, verbose_name="error"
                    ),
                ),
                (
                    "alert",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to="jobqueue_alerts.alert",
                        verbose_name="alert",
                    ),
                ),
            ],
            options={
                "verbose_name": "delivery of an alert",
                "verbose_name_plural": "deliveries of alerts",
                "default_permissions": (),
                "required_db_vendor": "postgresql",
                "indexes": [
                    models.Index(
                        condition=models.Q(("given_up_at", None), ("sent_at", None)),
                        fields=["channel", "id"],
                        name="jobqueue_ad_unsent",
                    ),
                    models.Index(
                        fields=["channel", "planned_at"], name="jobqueue_ad_planned"
                    ),
                ],
            },
        ),
    ]
