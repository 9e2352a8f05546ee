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
# A dump of PostgreSQL 18 that was restored by an earlier one.
NEW_ID_IS_MISSING = """
SELECT prosrc LIKE '%uuidv7()%' AND to_regprocedure('pg_catalog.uuidv7()') IS NULL
  FROM pg_proc WHERE oid = to_regprocedure('jobqueue_uuidv7()')
"""
NO_NEW_ID = "DROP FUNCTION IF EXISTS jobqueue_uuidv7()"

# Not in the model: its class needs django.contrib.postgres among the apps.
AUDIT_INDEX = """
CREATE INDEX jobqueue_audit_about ON jobqueue_auditentry
 USING gin (about jsonb_path_ops)
"""
NO_AUDIT_INDEX = "DROP INDEX IF EXISTS jobqueue_audit_about"

# The hot table is emptied as fast as it is filled. Eager vacuum kept claims flat where
# the default let them sag (7,200 against 4,800 jobs/s after 130,000 jobs), and room in
# the pages keeps a claim's new row version beside the old one. Roll-ups and reports are
# rewritten where they are, too. Figures are soon taken again.
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
ALTER TABLE jobqueue_bucket SET (fillfactor = 50);
ALTER TABLE jobqueue_host SET (fillfactor = 50);
ALTER TABLE jobqueue_rollup SET (fillfactor = 70);
ALTER TABLE jobqueue_total SET (fillfactor = 50);
ALTER TABLE jobqueue_failurerollup SET (fillfactor = 70);
ALTER TABLE jobqueue_report SET (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
"""

# The only definition of a job's unique key: an enqueue, a follower and plain SQL must
# agree. The text of jsonb is the same for equal data, whatever the order of their keys.
# In plpgsql, which keeps its plan: the planner tried to inline an SQL function, each time
# (planning an enqueue took twice as long).
UNIQUE_KEY = """
CREATE FUNCTION jobqueue_unique_key(job_type text, rule jsonb, data jsonb) RETURNS uuid
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE AS $body$
BEGIN
  IF jsonb_typeof(data) = 'object' THEN
    data := (rule -> 'defaults') || data;
    IF rule -> 'by' <> 'null' THEN
      data := (SELECT coalesce(jsonb_object_agg(counted.key, counted.value), '{}')
                 FROM jsonb_each(data) AS counted
                WHERE rule -> 'by' ? counted.key);
    END IF;
  END IF;
  RETURN encode(substring(sha256(convert_to(
           jsonb_build_array(job_type, 'data', data)::text, 'UTF8'))
         FROM 1 FOR 16), 'hex')::uuid;
END
$body$
"""
NO_UNIQUE_KEY = "DROP FUNCTION IF EXISTS jobqueue_unique_key(text, jsonb, jsonb)"

# The only definition of the key that a job counts against, for the same reason. What
# plain SQL made too long for the column is cut, and stays one key. Of several parameters
# commas are escaped: ("a,b", "c") and ("a", "b,c") are two keys. The backslash
# is chr(92), which means the same whatever standard_conforming_strings is.
LIMIT_KEY = """
CREATE FUNCTION jobqueue_limit_key(rule jsonb, data jsonb) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE AS $body$
DECLARE
  key text;
BEGIN
  IF jsonb_typeof(data) = 'object' THEN
    data := (rule -> 'defaults') || data;
  END IF;
  SELECT coalesce(string_agg(
           CASE WHEN jsonb_array_length(rule -> 'by') > 1
                THEN replace(replace(coalesce(data ->> part.name, ''),
                                     chr(92), repeat(chr(92), 2)),
                             ',', chr(92) || ',')
                ELSE coalesce(data ->> part.name, '') END,
           ',' ORDER BY part.place), '')
    INTO key
    FROM jsonb_array_elements_text(rule -> 'by')
         WITH ORDINALITY AS part (name, place);
  IF length(key) > 150 THEN
    key := left(key, 110) || '…' || md5(key);
  END IF;
  RETURN (rule ->> 'name') || ' ' || key;
END
$body$
"""
NO_LIMIT_KEY = "DROP FUNCTION IF EXISTS jobqueue_limit_key(jsonb, jsonb)"

# What a job counts with in a rate that counts weights, by its data: a whole number of at
# least 1, whatever plain SQL wrote there.
WEIGHT = """
CREATE FUNCTION jobqueue_weight(rule jsonb, data jsonb) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $body$
  SELECT CASE WHEN jsonb_typeof(data -> (rule ->> 'by')) = 'number'
              THEN least(2147483647, greatest(1, ceil((data ->> (rule ->> 'by'))::numeric)))
              ELSE coalesce((rule ->> 'default')::integer, 1) END::integer
$body$
"""
NO_WEIGHT = "DROP FUNCTION IF EXISTS jobqueue_weight(jsonb, jsonb)"

# The only definition of a moment that is counted from another one: not beyond any moment
# that a job may have, which Python can still read. READABLE in domain/policy.py is the
# same. Without a wait there is none, and nothing is called.
LATER = """
CREATE FUNCTION jobqueue_later(moment timestamptz, wait interval) RETURNS timestamptz
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE AS $body$
DECLARE
  first CONSTANT timestamptz := '0001-01-03 00:00+00';
  last CONSTANT timestamptz := '9999-12-30 00:00+00';
BEGIN
  wait := greatest(first - moment, least(wait, last - moment));
  RETURN greatest(first, least(moment + wait, last));
END
$body$
"""
NOT_LATER = "DROP FUNCTION IF EXISTS jobqueue_later(timestamptz, interval)"

# Workers read their policies again after whatever changes a limit by key: an operator, a
# deploy, plain SQL. A worker that took a limit for unlimited claims nothing until then.
LIMIT_CHANGED = """
CREATE FUNCTION jobqueue_notify_limit() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM pg_notify('jobqueue', 't:');
  RETURN NULL;
END
$body$;
CREATE TRIGGER jobqueue_notify_limit
 AFTER INSERT OR DELETE
    OR UPDATE OF concurrency, concurrency_override, rate, rate_override, strict
    ON jobqueue_keylimit FOR EACH ROW EXECUTE FUNCTION jobqueue_notify_limit();
CREATE TRIGGER jobqueue_notify_limit
 AFTER INSERT OR DELETE OR UPDATE
    ON jobqueue_keyoverride FOR EACH ROW EXECUTE FUNCTION jobqueue_notify_limit()
"""
LIMIT_UNNOTICED = """
DROP TRIGGER IF EXISTS jobqueue_notify_limit ON jobqueue_keylimit;
DROP TRIGGER IF EXISTS jobqueue_notify_limit ON jobqueue_keyoverride;
DROP FUNCTION IF EXISTS jobqueue_notify_limit()
"""

# A rate that was changed, by whomever, begins with a bucket that is empty at most: what
# was spent of a slow one would hold a fast one for hours. Workers read their policies
# again.
RATE_CHANGED = """
CREATE FUNCTION jobqueue_refill(rate text) RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $body$
  SELECT coalesce(substring(rate FROM '/([0-9.]+)s')::float8 * burst
                  / greatest(1, substring(rate FROM '^[0-9]+')::bigint - burst + 1)
                  * interval '1 second', interval '0')
    FROM (SELECT substring(rate FROM '[0-9]+$')::bigint) AS the (burst)
$body$;
CREATE FUNCTION jobqueue_change_rate() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  latest timestamptz := clock_timestamp()
                        + jobqueue_refill(coalesce(NEW.rate_override, NEW.rate));
BEGIN
  UPDATE jobqueue_bucket AS bucket
     SET full_at = latest
   WHERE CASE TG_TABLE_NAME WHEN 'jobqueue_jobtype' THEN bucket.limit_key = NEW.name
              ELSE bucket.limit_key >= NEW.name || ' '
                   AND bucket.limit_key < NEW.name || '!' END
     AND bucket.full_at > latest
     AND NOT EXISTS (SELECT FROM jobqueue_keyoverride AS said
                      WHERE said.limit_key = bucket.limit_key AND said.rate IS NOT NULL);
  PERFORM pg_notify('jobqueue', 't:');
  RETURN NULL;
END
$body$;
CREATE TRIGGER jobqueue_change_rate AFTER UPDATE OF rate, rate_override
    ON jobqueue_jobtype FOR EACH ROW
  WHEN (coalesce(OLD.rate_override, OLD.rate)
        IS DISTINCT FROM coalesce(NEW.rate_override, NEW.rate))
  EXECUTE FUNCTION jobqueue_change_rate();
CREATE TRIGGER jobqueue_change_rate AFTER UPDATE OF rate, rate_override
    ON jobqueue_keylimit FOR EACH ROW
  WHEN (coalesce(OLD.rate_override, OLD.rate)
        IS DISTINCT FROM coalesce(NEW.rate_override, NEW.rate))
  EXECUTE FUNCTION jobqueue_change_rate();
CREATE FUNCTION jobqueue_change_key_rate() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  key text := coalesce(NEW.limit_key, OLD.limit_key);
  latest timestamptz := clock_timestamp() + jobqueue_refill(coalesce(
    NEW.rate,
    (SELECT coalesce(held.rate_override, held.rate) FROM jobqueue_keylimit AS held
      WHERE held.name = split_part(key, ' ', 1))));
BEGIN
  IF TG_OP <> 'INSERT' AND coalesce(OLD.rate, '') = coalesce(NEW.rate, '') THEN
    RETURN NULL;
  END IF;
  UPDATE jobqueue_bucket AS bucket
     SET full_at = least(bucket.full_at, latest)
   WHERE bucket.limit_key = key;
  RETURN NULL;
END
$body$;
CREATE TRIGGER jobqueue_change_key_rate AFTER INSERT OR UPDATE OF rate OR DELETE
    ON jobqueue_keyoverride FOR EACH ROW EXECUTE FUNCTION jobqueue_change_key_rate()
"""
RATE_UNNOTICED = """
DROP TRIGGER IF EXISTS jobqueue_change_rate ON jobqueue_jobtype;
DROP TRIGGER IF EXISTS jobqueue_change_rate ON jobqueue_keylimit;
DROP FUNCTION IF EXISTS jobqueue_change_rate();
DROP TRIGGER IF EXISTS jobqueue_change_key_rate ON jobqueue_keyoverride;
DROP FUNCTION IF EXISTS jobqueue_change_key_rate();
DROP FUNCTION IF EXISTS jobqueue_refill(text)
"""

# A row that leaves its queue or its priority to the job type leaves all else to it, too.
# One whose unique window is open is left out. A job that has expired holds no key.
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
  NEW.followers := coalesce(policy.followers || NEW.followers, NEW.followers,
                            policy.followers);
  IF NEW.unique_key IS NULL AND policy.unique_rule IS NOT NULL THEN
    NEW.unique_key := jobqueue_unique_key(policy.name, policy.unique_rule, NEW.data);
    IF policy.unique_rule ->> 'until' IN ('finished', 'started') THEN
      NEW.unique_until_started := policy.unique_rule ->> 'until' = 'started';
      NEW.run_after := greatest(NEW.run_after, clock_timestamp() +
        (policy.unique_rule ->> 'debounce')::float8 * interval '1 second');
      UPDATE jobqueue_queuedjob SET unique_key = NULL
       WHERE unique_key = NEW.unique_key AND status = 'queued'
         AND expires_at <= clock_timestamp();
    ELSE
      INSERT INTO jobqueue_uniquewindow AS held (key, job_id, held_until, opened_at)
      VALUES (NEW.unique_key, NEW.id, clock_timestamp()
              + nullif(policy.unique_rule ->> 'until', 'forever')::float8
              * interval '1 second', clock_timestamp())
          ON CONFLICT (key) DO UPDATE
         SET job_id = excluded.job_id, held_until = excluded.held_until,
             opened_at = excluded.opened_at
       WHERE held.held_until <= clock_timestamp();
      IF NOT FOUND THEN
        RETURN NULL;
      END IF;
      NEW.unique_key := NULL;
    END IF;
  END IF;
  NEW.limit_key := coalesce(NEW.limit_key,
                            jobqueue_limit_key(policy.limit_rule, NEW.data));
  NEW.expires_in := coalesce(NEW.expires_in, NEW.expires_at - NEW.run_after,
                             policy.expires_in);
  NEW.expires_at := coalesce(NEW.expires_at,
                             jobqueue_later(NEW.run_after, NEW.expires_in));
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

# Whether the caller's own id was not used before: called with a row that was just
# inserted, it takes a new snapshot, so that it sees a job that was archived while the
# INSERT waited for its id. A transaction that sees the past cannot tell.
IS_NEW = """
CREATE FUNCTION jobqueue_is_new(job_id uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $body$
BEGIN
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable')
     OR EXISTS (SELECT FROM jobqueue_archivedjob AS job WHERE job.id = job_id)
  THEN
    RAISE unique_violation USING MESSAGE = 'the id may be in use: ' || job_id;
  END IF;
  RETURN true;
END
$body$
"""
IS_NOT_NEW = "DROP FUNCTION IF EXISTS jobqueue_is_new(uuid)"

# The channels of hosts with a worker that says that it is idle and can start jobs of this
# type, in random order; of many workers it looks at some. NULL if no worker of the queue
# is idle; {} if those that are have no listener of their host (embedded, remote).
IDLE_HOSTS = """
CREATE FUNCTION jobqueue_channel(supervisor text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $body$
  SELECT 'jobqueue_' || to_hex(hashtextextended(supervisor, 0))
$body$;
CREATE FUNCTION jobqueue_idle_hosts(of_queue text, of_type text) RETURNS text[]
LANGUAGE plpgsql VOLATILE AS $body$
BEGIN
  IF NOT EXISTS (SELECT FROM jobqueue_worker AS worker
                  WHERE worker.listening
                    AND (worker.queues IS NULL OR worker.queues ? of_queue))
  THEN
    RETURN NULL;
  END IF;
  RETURN ARRAY (
    SELECT jobqueue_channel(seen.supervisor)
      FROM (SELECT sample.supervisor, sample.job_types
              FROM (SELECT worker.supervisor, worker.job_types
                      FROM jobqueue_worker AS worker
                     WHERE worker.listening AND NOT worker.remote
                       AND worker.supervisor NOT LIKE '%/embedded'
                       AND (worker.queues IS NULL OR worker.queues ? of_queue)
                     LIMIT 100) AS sample
             ORDER BY random() LIMIT 8) AS seen
     WHERE seen.job_types ? of_type
     GROUP BY seen.supervisor
     ORDER BY random());
END
$body$;
"""
NO_IDLE_HOSTS = """
DROP FUNCTION IF EXISTS jobqueue_idle_hosts(text, text);
DROP FUNCTION IF EXISTS jobqueue_channel(text)
"""

# The first of these hosts is told of a job, and the second one that the first one was,
# so that no other one need look. All are told if there is none.
NOTIFY_HOSTS = """
CREATE FUNCTION jobqueue_notify_hosts(hosts text[], id uuid, queue text) RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
  IF hosts = '{}' THEN
    PERFORM pg_notify('jobqueue', 'q:' || queue);
  ELSE
    PERFORM pg_notify(hosts[1], 'j:' || queue);
    IF cardinality(hosts) > 1 THEN
      PERFORM pg_notify(hosts[2], 'n:' || id || ' ' || hosts[1] || ' ' || queue);
    END IF;
  END IF;
END
$body$
"""
DO_NOT_NOTIFY_HOSTS = (
    "DROP FUNCTION IF EXISTS jobqueue_notify_hosts(text[], uuid, text)"
)

# At the commit, since a worker may have become idle since the INSERT. One notification
# a queue: the setting lasts as long as the transaction. The first one is for hosts that
# can start the job; of further types and queues, and of jobs for later, all are told. A
# transaction that sees the past (repeatable read) notifies when it was open for longer
# than an idle worker polls often.
ANNOUNCE = """
CREATE FUNCTION jobqueue_announce() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  told text := coalesce(current_setting('jobqueue.announced', true), '');
  to_all text := ',' || NEW.queue || ',';
  to_some text := ',' || NEW.queue || ' ' || NEW.job_type || ',';
  hosts text[];
BEGIN
  IF strpos(told, to_all) > 0 OR strpos(told, to_some) > 0 THEN
    RETURN NULL;
  END IF;
  hosts := jobqueue_idle_hosts(NEW.queue, NEW.job_type);
  IF hosts <> '{}' AND told = '' AND NEW.run_after <= clock_timestamp() THEN
    PERFORM set_config('jobqueue.announced', to_some, true);
  ELSE
    PERFORM set_config('jobqueue.announced', told || to_all, true);
    hosts := CASE WHEN hosts IS NOT NULL OR (
      current_setting('transaction_isolation') IN ('repeatable read', 'serializable')
      AND clock_timestamp() > transaction_timestamp() + interval '0.1 seconds'
    ) THEN ARRAY[]::text[] END;
  END IF;
  IF hosts IS NOT NULL THEN
    PERFORM jobqueue_notify_hosts(hosts, NEW.id, NEW.queue);
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

# Whatever moves a job to the archive, and there are eight statements and an operator's
# plain SQL, enqueues its followers in the same transaction. So the trigger is one of the
# queue: an INSERT into the archive alone, as of a dump that is restored, ends no job.
# Jobs without followers pay for a look at one column. A type that is
# not there is no error: the archiving goes first. domain/followers.py has the same
# rules for immediate mode.
#
# A follower has the options of its type, unless those of its entry go before them. Of
# the finished job it gets the arguments that its handler takes, and the metadata. Of a
# unique follower that waits already, and is free to be enqueued again when it starts,
# the claim is held off until this transaction ends: it must see what this job did.
FOLLOW = """
CREATE FUNCTION jobqueue_follow() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  ended record;
  finished jsonb;
  enqueued jsonb[] := '{}';
  follower record;
  entry jsonb;
  arguments jsonb;
  due timestamptz;
  ends timestamptz;
  lifetime interval;
  new_id uuid;
  held_key uuid;
  until_started boolean;
  held_in text;
BEGIN
  SELECT id, status, result, error_class, error_message, metadata, followers
    INTO ended
    FROM jobqueue_archivedjob
   WHERE id = OLD.id;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  finished := jsonb_build_object(
    'job', ended.id, 'status', ended.status, 'result', ended.result,
    'error_class', ended.error_class, 'error_message', ended.error_message);
  FOR follower IN
    SELECT named.option, given.entry, type.*
      FROM unnest(CASE ended.status
                    WHEN 'succeeded' THEN '{on_success,on_complete}'::text[]
                    WHEN 'cancelled' THEN '{on_complete}'::text[]
                    ELSE '{on_failure,on_complete}'::text[] END)
           WITH ORDINALITY AS named (option, place),
           jsonb_array_elements(
             CASE jsonb_typeof(ended.followers -> named.option)
               WHEN 'array' THEN ended.followers -> named.option ELSE '[]' END)
           WITH ORDINALITY AS given (entry, place),
           jobqueue_jobtype AS type
     WHERE type.name = CASE jsonb_typeof(given.entry)
                         WHEN 'string' THEN given.entry #>> '{}'
                         ELSE given.entry ->> 'job_type' END
     ORDER BY named.place, given.place
  LOOP
    entry := follower.entry;
    CONTINUE WHEN entry = ANY (enqueued);
    enqueued := array_append(enqueued, entry);
    SELECT coalesce(jsonb_object_agg(one.key, one.value), '{}') INTO arguments
      FROM jsonb_each(finished) AS one
     WHERE follower.follower_arguments ? one.key;
    due := jobqueue_later(
      greatest((entry ->> 'run_after')::timestamptz, clock_timestamp()),
      make_interval(secs => coalesce((entry ->> 'delay')::float8, 0)));
    held_key := coalesce(
      (entry ->> 'unique_key')::uuid,
      jobqueue_unique_key(follower.name, follower.unique_rule, arguments));
    until_started := coalesce(entry ->> 'unique_until',
                              follower.unique_rule ->> 'until', '') = 'started';
    new_id := jobqueue_uuidv7();
    IF entry ->> 'unique_until' IS NULL
       AND follower.unique_rule ->> 'until' NOT IN ('finished', 'started') THEN
      INSERT INTO jobqueue_uniquewindow AS held (key, job_id, held_until, opened_at)
      VALUES (held_key, new_id, clock_timestamp()
              + nullif(follower.unique_rule ->> 'until', 'forever')::float8
              * interval '1 second', clock_timestamp())
          ON CONFLICT (key) DO UPDATE
         SET job_id = excluded.job_id, held_until = excluded.held_until,
             opened_at = excluded.opened_at
       WHERE held.held_until <= clock_timestamp();
      CONTINUE WHEN NOT FOUND;
      held_key := NULL;
    END IF;
    due := greatest(due, clock_timestamp()
                         + (follower.unique_rule ->> 'debounce')::float8
                         * interval '1 second');
    ends := jobqueue_later((entry ->> 'expires_at')::timestamptz, interval '0');
    lifetime := coalesce(ends - due,
                         make_interval(secs => (entry ->> 'expires_in')::float8),
                         follower.expires_in);
    UPDATE jobqueue_queuedjob SET unique_key = NULL
     WHERE unique_key = held_key AND status = 'queued'
       AND expires_at <= clock_timestamp();
    LOOP
      INSERT INTO jobqueue_queuedjob (
             id, job_type, queue, priority, data, follows, enqueued_by, run_after,
             expires_at, expires_in, created_at, max_attempts, timeout, backoff, tags, metadata,
             followers, unique_key, unique_until_started, limit_key, weight)
      VALUES (new_id, follower.name, coalesce(entry ->> 'queue', follower.queue),
              coalesce((entry ->> 'priority')::smallint, follower.priority_override,
                       follower.priority),
              arguments, ended.id, follower.option, due,
              coalesce(ends, jobqueue_later(due, lifetime)), lifetime,
              clock_timestamp(), (entry ->> 'max_attempts')::integer,
              make_interval(secs => (entry ->> 'timeout')::float8), entry -> 'backoff',
              entry -> 'tags',
              coalesce(ended.metadata || (entry -> 'metadata'), entry -> 'metadata',
                       ended.metadata),
              coalesce(follower.followers || (entry -> 'followers'),
                       entry -> 'followers', follower.followers),
              held_key, held_key IS NOT NULL AND until_started,
              coalesce(follower.limit_name || ' ' || (entry ->> 'limit_key'),
                       jobqueue_limit_key(follower.limit_rule, arguments)),
              (entry ->> 'weight')::integer)
          ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL DO NOTHING;
      EXIT WHEN FOUND OR NOT until_started;
      SELECT job.queue INTO held_in
        FROM jobqueue_queuedjob AS job
       WHERE job.unique_key = held_key
         FOR KEY SHARE;
      IF FOUND THEN
        PERFORM pg_notify('jobqueue', 'b:' || held_in);
        EXIT;
      END IF;
    END LOOP;
  END LOOP;
  RETURN NULL;
END
$body$;
CREATE TRIGGER jobqueue_follow AFTER DELETE ON jobqueue_queuedjob
   FOR EACH ROW WHEN (OLD.followers IS NOT NULL)
   EXECUTE FUNCTION jobqueue_follow()
"""
DO_NOT_FOLLOW = """
DROP TRIGGER IF EXISTS jobqueue_follow ON jobqueue_queuedjob;
DROP FUNCTION IF EXISTS jobqueue_follow()
"""

# A job leaves the queue when it is over, whoever ends it. Only those that somebody
# waits for are told of; the others pay for a look at one column.
TELL = """
CREATE FUNCTION jobqueue_notify_end() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM pg_notify('jobqueue', 'o:' || OLD.id);
  RETURN NULL;
END
$body$;
CREATE TRIGGER jobqueue_notify_end AFTER DELETE ON jobqueue_queuedjob
   FOR EACH ROW WHEN (OLD.awaited)
   EXECUTE FUNCTION jobqueue_notify_end()
"""
DO_NOT_TELL = """
DROP TRIGGER IF EXISTS jobqueue_notify_end ON jobqueue_queuedjob;
DROP FUNCTION IF EXISTS jobqueue_notify_end()
"""

# How many slots could be busy with the jobs of a queue: of each job type those that run,
# and of those that are ready as many as its concurrency lets start, none if the type or
# the queue is paused. Jobs that an endpoint has hold no slot, but count against the
# concurrency. Autoscalers call it with a role that may do nothing else, hence
# SECURITY DEFINER, with the schema that it is made in and nothing before it. Of each lane
# 10,000 jobs are counted: beside other work, 300,000 ready jobs took 4 ms at best in one
# lane, and 200 in 30 lanes. Without statistics the planner would read whole tables (800
# ms for one lane), so plans are pinned to indexes.
WANTED_SLOTS = """
DO $do$
BEGIN
  EXECUTE format($make$
CREATE FUNCTION jobqueue_wanted_slots(of_queue text) RETURNS bigint
LANGUAGE sql STABLE STRICT PARALLEL SAFE SECURITY DEFINER
SET search_path = %I, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $body$
  WITH RECURSIVE lane AS (
    (SELECT job.priority, job.job_type
       FROM jobqueue_queuedjob AS job
      WHERE job.status = 'queued' AND NOT job.quarantined AND job.queue = of_queue
      ORDER BY job.priority, job.job_type
      LIMIT 1)
    UNION ALL
    SELECT next.priority, next.job_type
      FROM lane,
           LATERAL (
             (SELECT job.priority, job.job_type
                FROM jobqueue_queuedjob AS job
               WHERE job.status = 'queued' AND NOT job.quarantined
                 AND job.queue = of_queue
                 AND job.priority = lane.priority AND job.job_type > lane.job_type
               ORDER BY job.job_type
               LIMIT 1)
             UNION ALL
             (SELECT job.priority, job.job_type
                FROM jobqueue_queuedjob AS job
               WHERE job.status = 'queued' AND NOT job.quarantined
                 AND job.queue = of_queue AND job.priority > lane.priority
               ORDER BY job.priority, job.job_type
               LIMIT 1)
             LIMIT 1) AS next),
  counted AS (
    SELECT lane.job_type, ready.jobs AS ready, 0 AS running, 0 AS handed_over
      FROM lane,
           LATERAL (
             SELECT count(*) AS jobs
               FROM (SELECT FROM jobqueue_queuedjob AS job
                      WHERE job.status = 'queued' AND NOT job.quarantined
                        AND job.queue = of_queue AND job.priority = lane.priority
                        AND job.job_type = lane.job_type
                        AND job.run_after <= statement_timestamp()
                      LIMIT 10000) AS found) AS ready
    UNION ALL
    SELECT job_type, count(*), 0, 0
      FROM jobqueue_queuedjob
     WHERE status = 'queued' AND quarantined AND queue = of_queue
       AND run_after <= statement_timestamp()
     GROUP BY job_type
    UNION ALL
    SELECT job_type, 0, count(*),
           count(*) FILTER (WHERE worker_id = ANY (ARRAY (
             SELECT id FROM jobqueue_worker WHERE state IN ('endpoint', 'moving'))))
      FROM jobqueue_queuedjob
     WHERE status = 'running' AND queue = of_queue
     GROUP BY job_type),
  summed AS (
    SELECT job_type, sum(ready) AS ready, sum(running) AS running,
           sum(handed_over) AS handed_over
      FROM counted
     GROUP BY job_type)
  SELECT coalesce(sum(
           CASE WHEN EXISTS (
                  SELECT FROM jobqueue_queue AS queue
                   WHERE queue.name = of_queue AND queue.paused
                     AND (queue.resume_at IS NULL
                          OR queue.resume_at > statement_timestamp()))
                  OR type.paused AND (type.resume_at IS NULL
                                      OR type.resume_at > statement_timestamp())
                THEN summed.running
                ELSE greatest(summed.running,
                              least(summed.ready + summed.running,
                                    CASE type.concurrency_override
                                      WHEN -1 THEN NULL
                                      ELSE coalesce(type.concurrency_override,
                                                    type.concurrency) END)) END
           - summed.handed_over), 0)::bigint
    FROM summed
    JOIN jobqueue_jobtype AS type ON type.name = summed.job_type
$body$
$make$, current_schema());
END
$do$
"""
NO_WANTED_SLOTS = "DROP FUNCTION IF EXISTS jobqueue_wanted_slots(text)"

# Our functions name our tables and each other with their schema, and so find them whatever
# the caller's search_path is by then: a trigger runs at the commit, or while a dump is
# restored. They have no path of their own, which would hide the clock of a test that
# stands before PostgreSQL's, and keep the planner from inlining. After all functions;
# what is made later needs it, too.
OWN_NAMES = r"""
DO $do$
DECLARE
  own oid;
BEGIN
  PERFORM set_config('quote_all_identifiers', 'off', true);
  FOR own IN
    SELECT oid FROM pg_proc
     WHERE pronamespace = current_schema()::regnamespace
       AND proname LIKE 'jobqueue\_%' AND proconfig IS NULL
  LOOP
    EXECUTE regexp_replace(pg_get_functiondef(own), '(?<![.\w''])jobqueue_(?=[a-z])',
                           replace(quote_ident(current_schema()), '\', '\\')
                             || '.jobqueue_', 'g');
  END LOOP;
END
$do$
"""

# What makes a thing, and what takes it away.
BEFORE_TABLES = ((NEW_ID, NO_NEW_ID),)  # the default of a column
AFTER_TABLES = (
    (AUDIT_INDEX, NO_AUDIT_INDEX),
    (STORAGE, ""),
    (UNIQUE_KEY, NO_UNIQUE_KEY),
    (LIMIT_KEY, NO_LIMIT_KEY),
    (WEIGHT, NO_WEIGHT),
    (LATER, NOT_LATER),
    (LIMIT_CHANGED, LIMIT_UNNOTICED),
    (RATE_CHANGED, RATE_UNNOTICED),
    (FILL, DO_NOT_FILL),
    (IS_NEW, IS_NOT_NEW),
    (IDLE_HOSTS, NO_IDLE_HOSTS),
    (NOTIFY_HOSTS, DO_NOT_NOTIFY_HOSTS),
    (ANNOUNCE, DO_NOT_ANNOUNCE),
    (FOLLOW, DO_NOT_FOLLOW),
    (TELL, DO_NOT_TELL),
    (WANTED_SLOTS, NO_WANTED_SLOTS),
    (OWN_NAMES, ""),
)
