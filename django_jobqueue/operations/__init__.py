"""The operator's verbs: a store call, a signal and a log line each.

The admin and the commands call these, and so may your code. ``by`` says who acts, for
the log and for receivers of the signal ``operated``; permissions are the caller's
business. ``using`` is the alias of the database, instead of the project's own for jobs.
"""

from typing import TYPE_CHECKING, Final

from django_jobqueue.text.lazy_names import lazily

if TYPE_CHECKING:
    from django_jobqueue.operations import bulk as bulk
    from django_jobqueue.operations import personal_data as personal_data
    from django_jobqueue.operations import schedules as schedules
    from django_jobqueue.operations.cancelling import cancel
    from django_jobqueue.operations.declaring import declare_job_type
    from django_jobqueue.operations.editing import edit_data
    from django_jobqueue.operations.enqueueing import enqueue
    from django_jobqueue.operations.failing import allow_attempts, fail
    from django_jobqueue.operations.failure_groups import (
        assign,
        ignore,
        note,
        reopen,
        resolve,
    )
    from django_jobqueue.operations.finding import get_job
    from django_jobqueue.operations.freeing import free_keys
    from django_jobqueue.operations.hosts import ask_hosts, scale_hosts
    from django_jobqueue.operations.leases import take_away_leases
    from django_jobqueue.operations.limits import (
        override_key_rate,
        override_key_share,
        override_limit,
    )
    from django_jobqueue.operations.overrides import override
    from django_jobqueue.operations.pausing import pause, resume
    from django_jobqueue.operations.pruning import prune, prune_jobs, prune_rules
    from django_jobqueue.operations.releasing import release
    from django_jobqueue.operations.replaying import replay, replay_many
    from django_jobqueue.operations.rescheduling import reschedule, run_now
    from django_jobqueue.operations.revealing import reveal
    from django_jobqueue.operations.sleeping import put_to_sleep, wake
    from django_jobqueue.operations.workers import ask_workers, request_stack_dumps

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
    "take_away_leases",
    "wake",
]

_PARTS: Final = ("bulk", "personal_data", "schedules")
# A worker, or a web process that cancels a job, needs few of these.
_NAMES: Final = {
    "cancelling": "cancel",
    "declaring": "declare_job_type",
    "editing": "edit_data",
    "enqueueing": "enqueue",
    "failing": "allow_attempts fail",
    "failure_groups": "assign ignore note reopen resolve",
    "finding": "get_job",
    "freeing": "free_keys",
    "hosts": "ask_hosts scale_hosts",
    "leases": "take_away_leases",
    "limits": "override_key_rate override_key_share override_limit",
    "overrides": "override",
    "pausing": "pause resume",
    "pruning": "prune prune_jobs prune_rules",
    "releasing": "release",
    "replaying": "replay replay_many",
    "rescheduling": "reschedule run_now",
    "revealing": "reveal",
    "sleeping": "put_to_sleep wake",
    "workers": "ask_workers request_stack_dumps",
}
__getattr__, __dir__ = lazily(
    globals(),
    {
        **{
            name: f"{__name__}.{name}"
            for name in ("bulk", "personal_data", "schedules")
        },
        **{
            name: f"{__name__}.{module}"
            for module, names in _NAMES.items()
            for name in names.split()
        },
    },
)
