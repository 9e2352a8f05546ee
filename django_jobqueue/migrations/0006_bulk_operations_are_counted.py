"""A bulk operation is counted before it starts, and changes no more than that."""

from django.db import migrations, models

from django_jobqueue.migrations._postgresql import Migration as PostgreSQLMigration


class Migration(PostgreSQLMigration):
    dependencies = [
        ("jobqueue", "0005_rows_filled_by_their_type"),
    ]

    operations = [
        migrations.AddField(
            model_name="bulkoperation",
            name="horizon",
            field=models.CharField(
                db_default="",
                help_text="The first transaction that was open when it was frozen.",
                max_length=20,
                verbose_name="horizon",
            ),
        ),
        migrations.AddField(
            model_name="bulkoperation",
            name="counted",
            field=models.JSONField(
                help_text="What is known of its jobs, as far as they are counted.",
                null=True,
                verbose_name="counted",
            ),
        ),
        migrations.AddField(
            model_name="bulkoperation",
            name="confirmed",
            field=models.BigIntegerField(
                help_text="No more jobs are changed than these.",
                null=True,
                verbose_name="confirmed",
            ),
        ),
    ]
