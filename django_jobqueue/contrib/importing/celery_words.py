"""Our words for Celery's settings, signals, exceptions and remote control."""

from __future__ import annotations

import re
from typing import Final

from django_jobqueue.text.foreign_words import ATTEMPTS, LIMIT, RATE, RUN_AGAIN

# By the name that they have since Celery 4, without the prefix that a project chose.
SETTINGS: Final = {
    "task_acks_late": RUN_AGAIN,
    "task_always_eager": "Write JOBQUEUE = {'MODE': 'immediate'}, or use drain()",
    "task_annotations": "Write the options at @job; operators have overrides",
    "task_default_priority": "Write @job(priority=…), from -100 to 100",
    "task_default_queue": "Write @job(queue=…); without one it is 'default'",
    "task_default_rate_limit": RATE,
    "task_eager_propagates": "Leave it out: in immediate mode errors are raised",
    "task_ignore_result": "Let handlers return None",
    "task_queues": "Leave it out: a queue is there when a job is",
    "task_reject_on_worker_lost": RUN_AGAIN,
    "task_routes": "Write @job(queue=…) at each handler",
    "task_serializer": "Leave it out: arguments and results are JSON",
    "task_soft_time_limit": f"{LIMIT}, or the setting TIMEOUT",
    "task_time_limit": f"{LIMIT}, or the setting TIMEOUT",
    "task_track_started": "Leave it out: the archive has each attempt",
    "worker_concurrency": "Write runworkers --processes N --threads N",
    "worker_max_memory_per_child": "Write runworkers --max-memory",
    "worker_max_tasks_per_child": "Write runworkers --max-jobs",
    "worker_prefetch_multiplier": "The setting PREFETCH is a time",
    "broker_url": "Leave it out: the setting DATABASE names an alias of DATABASES",
    "result_backend": "Leave it out: results are in the archive",
    "result_expires": "The setting RETENTION says how long jobs and results are kept",
    "timezone": "Schedules have tz=…, and by default TIME_ZONE",
}
_OLD: Final = {  # before Celery 4
    "acks_late": "task_acks_late",
    "always_eager": "task_always_eager",
    "annotations": "task_annotations",
    "default_queue": "task_default_queue",
    "default_rate_limit": "task_default_rate_limit",
    "eager_propagates_exceptions": "task_eager_propagates",
    "ignore_result": "task_ignore_result",
    "queues": "task_queues",
    "routes": "task_routes",
    "task_result_expires": "result_expires",
    "track_started": "task_track_started",
    "concurrency": "worker_concurrency",
    "max_tasks_per_child": "worker_max_tasks_per_child",
    "prefetch_multiplier": "worker_prefetch_multiplier",
}
_PREFIX: Final = re.compile(r"^CELERY[A-Z]?_")
# They could be anybody's.
_OF_MANY: Final = ("timezone", "broker_url", "result_backend", "result_expires")

SIGNALS: Final = {
    "after_task_publish": "job_enqueued, or jobs_enqueued",
    "before_task_publish": "job_enqueued, or jobs_enqueued",
    "task_failure": "job_failed",
    "task_postrun": "attempt_succeeded and attempt_failed",
    "task_prerun": "attempt_started",
    "task_retry": "job_retried",
    "task_revoked": "job_cancelled",
    "task_success": "job_succeeded",
    "worker_process_init": "process_started",
    "worker_ready": "worker_started",
}
EXCEPTIONS: Final = {
    "Ignore": "Raise Cancel('why')",
    "MaxRetriesExceededError": f"{ATTEMPTS}; after the last one, on_failure=… follows",
    "Reject": "Raise Fail('why'); to run it again, Retry(…)",
    "Retry": "Raise Retry(…) of django_jobqueue",
    "SoftTimeLimitExceeded": "Write except JobTimeout, and raise it again",
    "TaskRevokedError": "Look at wait(id).status, which is 'cancelled'",
    "TimeLimitExceeded": "Write except JobTimeout, and raise it again",
}
# Methods of ``app.control``.
CONTROL: Final = {
    "add_consumer": "Write jobqueue resume QUEUE --queue, or runworkers --queues",
    "cancel_consumer": "Write jobqueue pause QUEUE --queue",
    "inspect": "Read the models, or jobqueue status and jobqueue workers",
    "purge": "Write jobqueue cancel --queue …",
    "rate_limit": "Write jobqueue override TYPE --rate 10/m, in the whole cluster",
    "revoke": "Write cancel([job.id]); a job that runs is asked to stop",
    "shutdown": "Write jobqueue workers stop --all",
    "terminate": "Write cancel([job.id]); a job that runs is asked to stop",
    "time_limit": "Write jobqueue override TYPE --timeout 60",
}


def setting_of(name: str, *, of_app: bool = False) -> str:
    """Celery's present name of a setting, in either spelling, of a module or of
    ``app.conf``; empty if this is none."""
    bare = _PREFIX.sub("", name).lower()
    has_prefix = bare != name.lower()
    known = _OLD.get(bare, bare) if has_prefix else bare
    if known not in SETTINGS:
        return ""
    return known if has_prefix or of_app or known not in _OF_MANY else ""
