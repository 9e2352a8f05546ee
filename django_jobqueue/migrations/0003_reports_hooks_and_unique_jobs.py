"""Reports of attempts, unique jobs, metadata, and jobs that follow on others."""

from django.db import migrations, models

import django_jobqueue.models.functions
from django_jobqueue.migrations._postgresql import Migration as PostgreSQLMigration

# An attempt that tells how far it is rewrites its row every second.
STORAGE = """
ALTER TABLE jobqueue_report SET (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500)
"""

# Whatever archives a job, and there are nine statements and an operator's plain SQL,
# enqueues what follows on it in the same transaction. Jobs without a follower pay for a
# look at one column (1.004 times an INSERT of 200 rows without the trigger). A type that is not there is no error: the archiving goes first.
FOLLOW = """
CREATE FUNCTION jobqueue_follow() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  INSERT INTO jobqueue_queuedjob (
         job_type, queue, priority, run_after, created_at, expires_at, data, enqueued_by)
  SELECT type.name, type.queue, coalesce(type.priority_override, type.priority),
         clock_timestamp(), clock_timestamp(), clock_timestamp() + type.expires_in,
         jsonb_build_object('job', NEW.id, 'status', NEW.status), 'on_complete'
    FROM jobqueue_jobtype AS type
   WHERE type.name = NEW.on_complete;
  PERFORM pg_notify('jobqueue', 'q:' || type.queue)
     FROM jobqueue_jobtype AS type
    WHERE type.name = NEW.on_complete
      AND EXISTS (SELECT FROM jobqueue_worker AS worker
                   WHERE worker.listening
                     AND (worker.queues IS NULL OR worker.queues ? type.queue));
  RETURN NULL;
END
$body$;
CREATE TRIGGER jobqueue_follow AFTER INSERT ON jobqueue_archivedjob
   FOR EACH ROW WHEN (NEW.on_complete IS NOT NULL)
   EXECUTE FUNCTION jobqueue_follow()
"""
DO_NOT_FOLLOW = """
DROP TRIGGER IF EXISTS jobqueue_follow ON jobqueue_archivedjob;
DROP FUNCTION IF EXISTS jobqueue_follow()
"""

# A job leaves the queue when it is over, whoever ends it. Only those that somebody
# waits for are told of; the others pay for a look at one column.
TELL = """
CREATE FUNCTION jobqueue_tell() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM pg_notify('jobqueue', 'o:' || OLD.id);
  RETURN NULL;
END
$body$;
CREATE TRIGGER jobqueue_tell AFTER DELETE ON jobqueue_queuedjob
   FOR EACH ROW WHEN (OLD.awaited)
   EXECUTE FUNCTION jobqueue_tell()
"""
DO_NOT_TELL = """
DROP TRIGGER IF EXISTS jobqueue_tell ON jobqueue_queuedjob;
DROP FUNCTION IF EXISTS jobqueue_tell()
"""


class Migration(PostgreSQLMigration):
    dependencies = [
        ("jobqueue", "0002_bulk_operations_and_rights"),
    ]

    operations = [
        migrations.CreateModel(
            name="Report",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("job_id", models.UUIDField(verbose_name="job")),
                (
                    "fence",
                    models.BigIntegerField(
                        help_text="Number of the claim, so that attempts never mix.",
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
                        help_text="Each a list: seconds since 1970, level, text.",
                        verbose_name="lines",
                    ),
                ),
                (
                    "dropped",
                    models.IntegerField(
                        db_default=0,
                        help_text="Lines that there was no room for.",
                        verbose_name="dropped",
                    ),
                ),
                (
                    "queries",
                    models.IntegerField(
                        blank=True,
                        help_text="Sent to databases.",
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
                        db_default=django_jobqueue.models.functions.ClockTimestamp(),
                        verbose_name="started at",
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        db_default=django_jobqueue.models.functions.ClockTimestamp(),
                        verbose_name="updated at",
                    ),
                ),
            ],
            options={
                "verbose_name": "report",
                "verbose_name_plural": "reports",
                "default_permissions": (),
            },
        ),
        migrations.AddField(
            model_name="archivedjob",
            name="metadata",
            field=models.JSONField(
                blank=True,
                help_text="What travels with the job beside its data.",
                null=True,
                verbose_name="metadata",
            ),
        ),
        migrations.AddField(
            model_name="archivedjob",
            name="on_complete",
            field=models.CharField(
                blank=True,
                db_collation="C",
                help_text="Job type of the job that is enqueued when this one is over.",
                max_length=100,
                null=True,
                verbose_name="on complete",
            ),
        ),
        migrations.AddField(
            model_name="jobtype",
            name="on_complete",
            field=models.CharField(
                db_collation="C",
                db_default="",
                max_length=100,
                verbose_name="on complete",
            ),
        ),
        migrations.AddField(
            model_name="jobtype",
            name="unique_by",
            field=models.CharField(
                db_default="",
                help_text="Of what there is one job at a time; empty is no limit.",
                max_length=300,
                verbose_name="unique by",
            ),
        ),
        migrations.AddField(
            model_name="queuedjob",
            name="metadata",
            field=models.JSONField(
                blank=True,
                help_text="What travels with the job beside its data.",
                null=True,
                verbose_name="metadata",
            ),
        ),
        migrations.AddField(
            model_name="queuedjob",
            name="on_complete",
            field=models.CharField(
                blank=True,
                db_collation="C",
                help_text="Job type of the job that is enqueued when this one is over.",
                max_length=100,
                null=True,
                verbose_name="on complete",
            ),
        ),
        migrations.AddField(
            model_name="queuedjob",
            name="unique_key",
            field=models.UUIDField(
                blank=True,
                help_text="No other job with this key is enqueued meanwhile.",
                null=True,
                verbose_name="unique key",
            ),
        ),
        migrations.AddField(
            model_name="queuedjob",
            name="unique_until_started",
            field=models.BooleanField(
                db_default=False,
                help_text="The key is free again when the job is claimed.",
                verbose_name="unique until started",
            ),
        ),
        migrations.AddField(
            model_name="queuedjob",
            name="awaited",
            field=models.BooleanField(
                db_default=False,
                help_text="Somebody waits for its end, and is notified of it.",
                verbose_name="awaited",
            ),
        ),
        migrations.AddConstraint(
            model_name="queuedjob",
            constraint=models.UniqueConstraint(
                condition=models.Q(("unique_key__isnull", False)),
                fields=("unique_key",),
                name="jobqueue_q_unique",
            ),
        ),
        migrations.AddConstraint(
            model_name="report",
            constraint=models.UniqueConstraint(
                fields=("job_id", "fence"), name="jobqueue_report_attempt"
            ),
        ),
        migrations.RunSQL(STORAGE, migrations.RunSQL.noop),
        migrations.RunSQL(FOLLOW, DO_NOT_FOLLOW),
        migrations.RunSQL(TELL, DO_NOT_TELL),
    ]
