"""Whatever inserts a job gets what its type says, and has idle workers notified.

Also: the reason for cancelling a running job, and the limit of attempts that applied.
"""

from django.db import migrations, models

from django_jobqueue.migrations._postgresql import Migration as PostgreSQLMigration

# The only definition of a job's unique key: an enqueue, a follower and plain SQL must
# agree. The text of jsonb is the same for equal data, whatever the order of their keys.
UNIQUE_KEY = """
CREATE FUNCTION jobqueue_unique_key(job_type text, rule jsonb, data jsonb) RETURNS uuid
LANGUAGE sql STABLE STRICT PARALLEL SAFE AS $body$
  SELECT encode(substring(sha256(convert_to(
           jsonb_build_array(job_type, 'data', CASE
             WHEN jsonb_typeof(data) <> 'object' THEN data
             ELSE (SELECT coalesce(jsonb_object_agg(counted.key, counted.value), '{}')
                     FROM jsonb_each((rule -> 'defaults') || data) AS counted
                    WHERE rule -> 'by' = 'null' OR rule -> 'by' ? counted.key)
           END)::text, 'UTF8')) FROM 1 FOR 16), 'hex')::uuid
$body$
"""
NO_UNIQUE_KEY = "DROP FUNCTION IF EXISTS jobqueue_unique_key(text, jsonb, jsonb)"

# A row that leaves its queue or its priority to the job type leaves all else to it, too.
# Our own statements name both, and pay for a look at two columns: no difference that
# could be measured in a single INSERT (51 us of server time), 4 % of a COPY.
FILL = """
CREATE FUNCTION jobqueue_fill() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  policy jobqueue_jobtype%ROWTYPE;
BEGIN
  SELECT * INTO policy FROM jobqueue_jobtype WHERE name = NEW.job_type;
  IF NEW.queue = '' THEN
    NEW.queue := coalesce(policy.queue, 'default');
  END IF;
  IF NEW.priority = 32767 THEN
    NEW.priority := coalesce(policy.priority_override, policy.priority, 0);
  END IF;
  NEW.expires_at := coalesce(NEW.expires_at, NEW.run_after + policy.expires_in);
  NEW.on_complete := coalesce(NEW.on_complete, nullif(policy.on_complete, ''));
  IF NEW.unique_key IS NULL AND policy.unique_rule IS NOT NULL THEN
    NEW.unique_key := jobqueue_unique_key(policy.name, policy.unique_rule, NEW.data);
    NEW.unique_until_started :=
      coalesce(policy.unique_rule ->> 'until' = 'started', false);
  END IF;
  RETURN NEW;
END
$body$;
CREATE TRIGGER jobqueue_fill BEFORE INSERT ON jobqueue_queuedjob
   FOR EACH ROW WHEN (NEW.queue = '' OR NEW.priority = 32767)
   EXECUTE FUNCTION jobqueue_fill()
"""
DO_NOT_FILL = """
DROP TRIGGER IF EXISTS jobqueue_fill ON jobqueue_queuedjob;
DROP FUNCTION IF EXISTS jobqueue_fill()
"""

# At the commit, since a worker may have become idle since the INSERT. One notification
# a queue: the setting lasts as long as the transaction. A transaction that sees the past
# (repeatable read) notifies when it was open for longer than an idle worker polls often.
ANNOUNCE = """
CREATE FUNCTION jobqueue_announce() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  told text := coalesce(current_setting('jobqueue.announced', true), '');
  entry text := ',' || NEW.queue || ',';
BEGIN
  IF strpos(told, entry) > 0 THEN
    RETURN NULL;
  END IF;
  PERFORM set_config('jobqueue.announced', told || entry, true);
  IF EXISTS (SELECT FROM jobqueue_worker AS worker
              WHERE worker.listening
                AND (worker.queues IS NULL OR worker.queues ? NEW.queue))
     OR (current_setting('transaction_isolation') IN ('repeatable read', 'serializable')
         AND clock_timestamp() > transaction_timestamp() + interval '0.1 seconds')
  THEN
    PERFORM pg_notify('jobqueue', 'q:' || NEW.queue);
  END IF;
  RETURN NULL;
END
$body$;
CREATE CONSTRAINT TRIGGER jobqueue_announce AFTER INSERT ON jobqueue_queuedjob
   DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.announce)
   EXECUTE FUNCTION jobqueue_announce()
"""
DO_NOT_ANNOUNCE = """
DROP TRIGGER IF EXISTS jobqueue_announce ON jobqueue_queuedjob;
DROP FUNCTION IF EXISTS jobqueue_announce()
"""

# The row leaves queue and priority to the follower's type, and so all else. Of a unique
# follower that waits already, and is free to be enqueued again when it starts, the claim
# is held off until this transaction ends: it must see what this job did.
FOLLOW = """
CREATE OR REPLACE FUNCTION jobqueue_follow() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  policy jobqueue_jobtype%ROWTYPE;
  arguments jsonb := jsonb_build_object('job', NEW.id, 'status', NEW.status);
  held_in text;
BEGIN
  SELECT * INTO policy FROM jobqueue_jobtype WHERE name = NEW.on_complete;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  LOOP
    INSERT INTO jobqueue_queuedjob (
           job_type, data, enqueued_by, metadata, run_after, created_at)
    VALUES (policy.name, arguments, 'on_complete', NEW.metadata, clock_timestamp(),
            clock_timestamp())
        ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL DO NOTHING;
    EXIT WHEN FOUND OR policy.unique_rule ->> 'until' IS DISTINCT FROM 'started';
    SELECT job.queue INTO held_in
      FROM jobqueue_queuedjob AS job
     WHERE job.unique_key =
           jobqueue_unique_key(policy.name, policy.unique_rule, arguments)
       FOR KEY SHARE;
    IF FOUND THEN
      PERFORM pg_notify('jobqueue', 'b:' || held_in);
      EXIT;
    END IF;
  END LOOP;
  RETURN NULL;
END
$body$
"""
FOLLOW_WITHOUT_OPTIONS = """
CREATE OR REPLACE FUNCTION jobqueue_follow() RETURNS trigger LANGUAGE plpgsql AS $body$
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
$body$
"""


class Migration(PostgreSQLMigration):
    dependencies = [
        ("jobqueue", "0004_archive_by_time"),
    ]

    operations = [
        migrations.AddField(
            model_name="jobtype",
            name="unique_rule",
            field=models.JSONField(
                blank=True,
                help_text="By what jobs are unique, for the database; null is no limit.",
                null=True,
                verbose_name="unique rule",
            ),
        ),
        migrations.AddField(
            model_name="queuedjob",
            name="announce",
            field=models.BooleanField(
                db_default=True,
                help_text="Idle workers are notified when its INSERT is committed.",
                verbose_name="announce",
            ),
        ),
        migrations.AddField(
            model_name="queuedjob",
            name="cancel_reason",
            field=models.TextField(
                blank=True,
                help_text="Why a running job is to be cancelled.",
                null=True,
                verbose_name="cancel reason",
            ),
        ),
        migrations.AddField(
            model_name="archivedjob",
            name="effective_max_attempts",
            field=models.IntegerField(
                blank=True,
                help_text="The limit that applied when it ended; empty is unlimited or "
                "not known, as of jobs that succeeded.",
                null=True,
                verbose_name="attempts allowed",
            ),
        ),
        migrations.AlterField(
            model_name="queuedjob",
            name="priority",
            field=models.SmallIntegerField(
                db_default=32767,
                help_text="-100 to 100; greater is sooner.",
                verbose_name="priority",
            ),
        ),
        migrations.AlterField(
            model_name="queuedjob",
            name="queue",
            field=models.CharField(
                db_collation="C",
                db_default="",
                max_length=100,
                verbose_name="queue",
            ),
        ),
        migrations.RunSQL(UNIQUE_KEY, NO_UNIQUE_KEY),
        migrations.RunSQL(FILL, DO_NOT_FILL),
        migrations.RunSQL(ANNOUNCE, DO_NOT_ANNOUNCE),
        migrations.RunSQL(FOLLOW, FOLLOW_WITHOUT_OPTIONS),
    ]
