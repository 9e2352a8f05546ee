"""The functions and triggers of the tables, and how the tables are stored."""

from __future__ import annotations

# PostgreSQL 18 makes UUIDv7 itself. Before it: 48 bits of milliseconds, then random bits,
# with version and variant in their places (RFC 9562, section 5.7).
NEW_ID = """
DO $do$
BEGIN
  IF current_setting('server_version_num')::integer >= 180000 THEN
    CREATE OR REPLACE FUNCTION jobqueue_uuidv7() RETURNS uuid
    LANGUAGE sql VOLATILE PARALLEL SAFE AS 'SELECT uuidv7()';
  ELSE
    CREATE OR REPLACE FUNCTION jobqueue_uuidv7() RETURNS uuid
    LANGUAGE sql VOLATILE PARALLEL SAFE AS $sql$
      SELECT encode(
        set_bit(set_bit(
          overlay(uuid_send(gen_random_uuid())
                  PLACING substring(int8send(
                    (extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
                  FROM 1 FOR 6),
          52, 1), 53, 1), 'hex')::uuid
    $sql$;
  END IF;
END
$do$
"""
NO_NEW_ID = "DROP FUNCTION IF EXISTS jobqueue_uuidv7()"

# The hot table is emptied as fast as it is filled. Eager vacuum kept claims flat where
# the default let them sag (7,200 against 4,800 jobs/s after 130,000 jobs), and room in
# the pages keeps a claim's new row version beside the old one. Roll-ups and reports are
# rewritten where they are, too.
STORAGE = """
ALTER TABLE jobqueue_queuedjob SET (
  fillfactor = 70,
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000);
ALTER TABLE jobqueue_worker SET (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_cost_delay = 0);
ALTER TABLE jobqueue_schedule SET (fillfactor = 50);
ALTER TABLE jobqueue_rollup SET (fillfactor = 70);
ALTER TABLE jobqueue_failurerollup SET (fillfactor = 70);
ALTER TABLE jobqueue_report SET (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
"""

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

# Whatever archives a job, and there are nine statements and an operator's plain SQL,
# enqueues what follows on it in the same transaction. Jobs without a follower pay for a
# look at one column (1.004 times an INSERT of 200 rows without the trigger). A type that
# is not there is no error: the archiving goes first.
#
# The row leaves queue and priority to the follower's type, and so all else. Of a unique
# follower that waits already, and is free to be enqueued again when it starts, the claim
# is held off until this transaction ends: it must see what this job did.
FOLLOW = """
CREATE FUNCTION jobqueue_follow() RETURNS trigger LANGUAGE plpgsql AS $body$
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
