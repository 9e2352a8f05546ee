"""The operator's verbs: a store call, a signal and a log line each.

The admin and the commands call these, and so may your code. ``by`` says who acts, for
the log and for receivers of the signal ``operated``; permissions are the caller's
business. ``using`` is the alias of the database, instead of the project's own for jobs.
"""

from typing import TYPE_CHECKING, Final

from django_jobqueue.text.lazy_names import lazily

if TYPE_CHECKING:
    from django_jobqueue.operations import bulk as bulk
    from django_jobqueue.operations.declaring import declare_job_type
    from django_jobqueue.operations.failure_groups import (
        assign,
        ignore,
        note,
        reopen,
        resolve,
    )
    from django_jobqueue.operations.finding import get_job, reveal
    from django_jobqueue.operations.hosts import (
        ask_hosts,
        ask_workers,
        request_stack_dumps,
        scale_hosts,
    )
    from django_jobqueue.operations.limits import (
        override_key_rate,
        override_key_share,
        override_limit,
    )
    from django_jobqueue.operations.overrides import override
    from django_jobqueue.operations.pausing import pause, resume
    from django_jobqueue.operations.pruning import prune, prune_jobs, prune_rules
    from django_jobqueue.operations.queued_jobs import (
        allow_attempts,
        cancel,
        edit_data,
        enqueue,
        fail,
        free_keys,
        release,
        reschedule,
        run_now,
    )
    from django_jobqueue.operations.replaying import replay, replay_many
    from django_jobqueue.operations.sleeping import put_to_sleep, wake

__all__ = [
    "allow_attempts",
    "ask_hosts",
    "ask_workers",
    "assign",
    "cancel",
    "declare_job_type",
    "edit_data",
    "enqueue",
    "fail",
    "free_keys",
    "get_job",
    "ignore",
    "note",
    "override",
    "override_key_rate",
    "override_key_share",
    "override_limit",
    "pause",
    "prune",
    "prune_jobs",
    "prune_rules",
    "put_to_sleep",
    "reopen",
    "release",
    "replay",
    "replay_many",
    "request_stack_dumps",
    "reschedule",
    "resolve",
    "resume",
    "reveal",
    "run_now",
    "scale_hosts",
    "wake",
]

_PARTS: Final = ("bulk",)
# A worker, or a web process that cancels a job, needs few of these.
_NAMES: Final = {
    "declaring": "declare_job_type",
    "failure_groups": "assign ignore note reopen resolve",
    "finding": "get_job reveal",
    "hosts": "ask_hosts ask_workers request_stack_dumps scale_hosts",
    "limits": "override_key_rate override_key_share override_limit",
    "overrides": "override",
    "pausing": "pause resume",
    "pruning": "prune prune_jobs prune_rules",
    "queued_jobs": "allow_attempts cancel edit_data enqueue fail free_keys release"
    " reschedule run_now",
    "replaying": "replay replay_many",
    "sleeping": "put_to_sleep wake",
}
__getattr__, __dir__ = lazily(
    globals(),
    {
        **{name: f"{__name__}.{name}" for name in _PARTS},
        **{
            name: f"{__name__}.{module}"
            for module, names in _NAMES.items()
            for name in names.split()
        },
    },
)
