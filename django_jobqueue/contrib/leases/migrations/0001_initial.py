"""The table of leases by name."""

from django.db import migrations, models

import django_jobqueue.models.fields
from django_jobqueue.contrib.leases.apps import LeasesConfig
from django_jobqueue.migrations._postgresql import Migration as PostgreSQLMigration


class Migration(PostgreSQLMigration):
    initial = True

    dependencies = [("jobqueue", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Lease",
            fields=[
                (
                    "name",
                    models.CharField(
                        db_collation="C",
                        max_length=200,
                        primary_key=True,
                        serialize=False,
                        verbose_name="name",
                    ),
                ),
                (
                    "fence",
                    models.BigIntegerField(
                        db_default=1,
                        help_text="Grows whenever the lease is taken, or taken away.",
                        verbose_name="fence",
                    ),
                ),
                (
                    "token",
                    models.UUIDField(blank=True, null=True, verbose_name="token"),
                ),
                (
                    "holder",
                    models.CharField(
                        db_default="", max_length=200, verbose_name="holder"
                    ),
                ),
                (
                    "host",
                    models.CharField(
                        db_default="", max_length=200, verbose_name="host"
                    ),
                ),
                (
                    "taken_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.fields.ClockTimestamp(),
                        verbose_name="taken at",
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
                    "awaited",
                    models.BooleanField(
                        db_default=False,
                        help_text="Somebody waits to be notified when the lease is free.",
                        verbose_name="awaited",
                    ),
                ),
            ],
            options={
                "verbose_name": "lease",
                "verbose_name_plural": "leases",
                "permissions": [("take_away_lease", "Can take leases away")],
                "default_permissions": ("view",),
                "required_db_vendor": "postgresql",
            },
        ),
        migrations.RunSQL(LeasesConfig.storage, migrations.RunSQL.noop),
    ]
