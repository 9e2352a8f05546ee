"""Whether the project gives its tasks to us."""

from __future__ import annotations

from django.utils.module_loading import import_string

from django_jobqueue.backends.backend import JobQueueBackend
from django_jobqueue.backends.compat import task_backends


def is_in_use() -> bool:
    """Whether any alias of ``TASKS`` has a backend of ours."""
    return any(map(_is_ours, task_backends.settings.values()))


def _is_ours(params: dict[str, object]) -> bool:
    try:
        found = import_string(str(params.get("BACKEND")))
    except ImportError:  # the framework says so when it is used
        return False
    return isinstance(found, type) and issubclass(found, JobQueueBackend)
