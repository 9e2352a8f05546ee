"""Words of other job queues, and ours for the same thing.

Whoever comes from Celery, RQ, Huey, Dramatiq, procrastinate, Django-Q2 or Django's own
tasks writes them first; each message that refuses one says what to write here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django_jobqueue.text.suggestions import did_you_mean

ATTEMPTS: Final = "Write max_attempts=4 for 3 retries: it counts the first attempt, too"
BACKOFF: Final = "Write @job(backoff=…): seconds, a policy's name, or a function"
WHEN: Final = "Write using(run_after=…): a timedelta from now, or a moment"
LIMIT: Final = "Write @job(timeout=…), in seconds; there is one limit"
EXPIRY: Final = "Write expires_in=…, in seconds, or expires_at=…, a moment"
FOLLOWER: Final = "Write on_success=…, on_failure=… or on_complete=…, a handler"
NOT_RETRIED: Final = "Write @job(retry={SomeError: False}), or raise Fail(…)"
RETRIED: Final = "Write @job(retry={SomeError: True, Exception: False})"
OWN_ID: Final = "Write using(id=…), a UUID: one job is enqueued for it"
CONTEXT: Final = "Write @job(takes_context=True), or call current_job()"
QUEUE: Final = "Write queue=…"
RATE: Final = (
    "Write @job(rate=Rate(100, per=60)): at most 100 starts in any 60 seconds, in the "
    "whole cluster"
)
LOCK: Final = (
    "Write @job(per_key=PerKey('name', concurrency=1, strict=True)) for one job of a "
    "key at a time, @job(concurrency=1) for one of a type, or @job(unique=True)"
)
RUN_AGAIN: Final = (
    "Leave it out: a job runs again when its worker died. For acks_late=False write "
    "@job(delivery='at_most_once')"
)
SIGNALS: Final = f"{FOLLOWER}; or connect to a signal, such as job_failed"
SCHEDULE: Final = "Write handler.at(cron(…))(…), or @job(schedule=cron(…))"
RETENTION: Final = "The setting RETENTION sets how long jobs and results are kept"
ALWAYS: Final = "Leave it out: the archive keeps each job's result"
JSON: Final = "Leave it out: arguments and results are JSON"

# Stands for the handler that a sentence is about.
_HANDLER: Final = "<handler>"

# Options of tasks and of calls.
OPTIONS: Final[Mapping[str, str]] = {
    "ack_failure": "Write @job(max_attempts=1): a failed job is not tried again",
    "acks_late": RUN_AGAIN,
    "actor_name": "Write @job(name=…)",
    "aliases": "A job type has one name; declare the old one as a second handler",
    "args": "Give the arguments to enqueue itself: <handler>.enqueue(…)",
    "at_front": "Write using(priority=100)",
    "autoretry_for": RETRIED,
    "base": "Write @job(middleware=(…,)) to wrap a handler",
    "bind": CONTEXT,
    "broker": "There is no broker; using=… names the alias of a database",
    "cached": ALWAYS,
    "cluster": QUEUE,
    "connection": "The enqueue uses Django's connection; using=… names an alias",
    "context": CONTEXT,
    "countdown": "Write using(run_after=timedelta(seconds=…))",
    "cron": SCHEDULE,
    "default_retry_delay": BACKOFF,
    "delay": "Write using(run_after=timedelta(seconds=…))",
    "depends_on": "Write using(on_success=…) at the job that comes first",
    "description": "The first line of the handler's docstring is shown",
    "dont_autoretry_for": NOT_RETRIED,
    "eta": "Write using(run_after=…), a moment that is aware of its time zone",
    "expires": EXPIRY,
    "exponential_wait": BACKOFF,
    "failure_ttl": RETENTION,
    "group": "Write using(tags=[…])",
    "headers": "Write using(metadata={…})",
    "hook": FOLLOWER,
    "ignore_result": "Let the handler return None",
    "interval": BACKOFF,
    "job_id": OWN_ID,
    "job_timeout": LIMIT,
    "kwargs": "Give the arguments to enqueue itself: <handler>.enqueue(name=value)",
    "linear_wait": BACKOFF,
    "link": FOLLOWER,
    "link_error": FOLLOWER,
    "lock": LOCK,
    "max_age": EXPIRY,
    "max_backoff": BACKOFF,
    "max_retries": ATTEMPTS,
    "meta": "Write using(metadata={…})",
    "min_backoff": BACKOFF,
    "next_run": WHEN,
    "on_retry_exhausted": SIGNALS,
    "pass_context": CONTEXT,
    "queue_name": QUEUE,
    "queueing_lock": "Write @job(unique=True, unique_until='started')",
    "rate_limit": RATE,
    "reject_on_worker_lost": RUN_AGAIN,
    "result_ttl": RETENTION,
    "retries": ATTEMPTS,
    "retry_backoff": BACKOFF,
    "retry_backoff_max": BACKOFF,
    "retry_delay": BACKOFF,
    "retry_jitter": BACKOFF,
    "retry_kwargs": ATTEMPTS,
    "retry_when": f"{RETRIED}, or raise Retry(…) or Fail(…)",
    "routing_key": QUEUE,
    "save": ALWAYS,
    "schedule_at": WHEN,
    "schedule_in": "Write using(run_after=timedelta(…))",
    "schedule_type": SCHEDULE,
    "serializer": JSON,
    "soft_time_limit": LIMIT,
    "sync": "Call the handler: <handler>(…); for tests, the setting MODE",
    "task_id": OWN_ID,
    "task_name": "Write using(tags=[…]), or an id=… of your own",
    "throws": NOT_RETRIED,
    "time_limit": LIMIT,
    "track_started": ALWAYS,
    "ttl": EXPIRY,
}

# Methods of tasks, where ours has a handler.
HANDLER: Final[Mapping[str, str]] = {
    "acall": "Await the handler: await <handler>(…)",
    "apply": "Call the handler: <handler>(…)",
    "apply_async": "Write <handler>.using(run_after=…, queue=…).enqueue(…)",
    "apply_async_on_commit": "Write <handler>.enqueue(…), which joins the transaction",
    "batch_defer": "Write <handler>.enqueue_many([{…}, {…}])",
    "call": "Call the handler: <handler>(…)",
    "call_local": "Call the handler: <handler>(…)",
    "chunks": "Write <handler>.enqueue_many([{…}, {…}])",
    "configure": "Write <handler>.using(run_after=…, queue=…).enqueue(…)",
    "defer": "Write <handler>.enqueue(name=value)",
    "defer_async": "Write await <handler>.aenqueue(name=value)",
    "delay": "Write <handler>.enqueue(…)",
    "delay_on_commit": "Write <handler>.enqueue(…), which joins the transaction",
    "enqueue_at": "Write <handler>.using(run_after=moment).enqueue(…)",
    "enqueue_in": "Write <handler>.using(run_after=timedelta(minutes=5)).enqueue(…)",
    "enqueue_on_commit": "Write <handler>.enqueue(…), which joins the transaction",
    "error": FOLLOWER,
    "get_result": "Write get_job(id), which has the result when the job is over",
    "aget_result": "Write await sync_to_async(get_job)(id)",
    "lock_task": LOCK,
    "map": "Write <handler>.enqueue_many([{…}, {…}])",
    "message": "Write <handler>.enqueue(…); using(…) holds options for later calls",
    "rate_limit": RATE,
    "request": CONTEXT,
    "retry": "Raise Retry(after=60) in the handler",
    "revoke": "Write cancel([job.id]); operations.pause([…]) stops a whole type",
    "run": "Call the handler: <handler>(…)",
    "s": "There are no signatures; on_success=… lets a job follow on another",
    "schedule": "Write <handler>.using(run_after=…).enqueue(…)",
    "send": "Write <handler>.enqueue(…)",
    "send_with_options": "Write <handler>.using(run_after=…, queue=…).enqueue(…)",
    "si": "There are no signatures; on_success=… lets a job follow on another",
    "signature": "There are no signatures; on_success=… lets a job follow on another",
    "starmap": "Write <handler>.enqueue_many([{…}, {…}])",
    "then": FOLLOWER,
    "update_state": "Write current_job().progress(done, total) in the handler",
}

# What results have, where ours has a Job: the row as it was when it was read.
JOB: Final[Mapping[str, str]] = {
    "args": "Its arguments are job.data, by their names",
    "cancel": "Write cancel([job.id])",
    "delete": "Write cancel([job.id]), or let retention prune it",
    "failed": "Write get_job(job.id).status == 'failed'",
    "forget": RETENTION,
    "get": "Write wait(job.id, timeout=10).result",
    "get_id": "Write job.id",
    "get_result": "Write wait(job.id, timeout=10).result",
    "get_status": "Write get_job(job.id).status",
    "is_finished": "Write get_job(job.id).is_over",
    "job_id": "Write job.id",
    "join": "Write wait(job.id, timeout=10)",
    "kwargs": "Its arguments are job.data, by their names",
    "message_id": "Write job.id",
    "meta": "Write job.metadata",
    "ready": "Write get_job(job.id).is_over",
    "refresh": "Write get_job(job.id)",
    "requeue": "Write replay(job.id)",
    "retry": "Write replay(job.id)",
    "return_value": "Write get_job(job.id).result",
    "revoke": "Write cancel([job.id])",
    "save_meta": "In the handler: current_job().save_metadata()",
    "state": "Write get_job(job.id).status",
    "successful": "Write get_job(job.id).status == 'succeeded'",
    "task_id": "Write job.id",
    "traceback": "Failures are rows of the model Failure, one for each attempt",
    "wait": "Write wait(job.id, timeout=10).result",
}

# What a bound task, or a context, has elsewhere.
IN_HANDLER: Final[Mapping[str, str]] = {
    "is_aborted": "Write context.cancelled, or context.check_cancelled()",
    "job_id": "Write context.id",
    "max_retries": "Write context.max_attempts",
    "meta": "Write context.metadata",
    "request": "Its parts are the context's own: context.id, context.attempt, …",
    "retries": "Write context.attempt, which is 1 at first",
    "retry": "Raise Retry(after=60)",
    "save_meta": "Write context.save_metadata()",
    "should_abort": "Write context.cancelled, or context.check_cancelled()",
    "task": "Write context.job_type",
    "task_id": "Write context.id",
    "update_state": "Write context.progress(done, total, 'note')",
}

# Arguments of what a task raises.
RAISED: Final[Mapping[str, str]] = {
    "args": "A retry has the same arguments; enqueue another job for others",
    "countdown": "Write Retry(after=60), in seconds",
    "delay": "Write Retry(after=60), in seconds",
    "eta": "Write Retry(after=moment - timezone.now())",
    "exc": "Write raise Retry('why') from error",
    "kwargs": "A retry has the same arguments; enqueue another job for others",
    "max_retries": ATTEMPTS,
    "message": "Write Retry('why')",
    "requeue": "Raise Retry(…) to run it again, Fail(…) or Cancel(…) not to",
    "retry": "Raise Retry(…) to run it again, Fail(…) or Cancel(…) not to",
    "seconds": "Write Retry(after=60), or Snooze(60)",
    "throw": "Write raise Retry(…)",
    "wait": "Write Retry(after=60), or Snooze(60)",
    "when": "Write Retry(after=moment - timezone.now())",
}


def advice(name: object, words: Mapping[str, str], handler: str = "handler") -> str:
    """Our word for a word of another queue, as a sentence that follows
    another one; nothing for other words. It names this ``handler``."""
    advised = words.get(name) if isinstance(name, str) else None
    return f" {advised}.".replace(_HANDLER, handler) if advised else ""


def option_hint(name: object, known: Iterable[str], handler: str = "handler") -> str:
    """Advice for an unknown option, as a sentence that follows
    another one: our word for that of another queue, or else the nearest of those that
    are ``known``."""
    return advice(name, OPTIONS, handler) or did_you_mean(name, known)


def no_attribute(
    owner: object, name: str, words: Mapping[str, str], handler: str = "handler"
) -> Any:
    """Raises AttributeError for an attribute that there is not, with what to write."""
    owner_type = type(owner).__name__
    raise AttributeError(
        f"{owner_type!r} object has no attribute {name!r}."
        f"{advice(name, words, handler)}",
        name=name,
        obj=owner,
    )
