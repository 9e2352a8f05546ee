"""Takes part in the framework, where TASKS has a backend of ours."""

from __future__ import annotations

from django.utils.module_loading import import_string

from django_jobqueue.backends.backend import JobQueueBackend
from django_jobqueue.backends.compat import task_backends
from django_jobqueue.backends.declared import find
from django_jobqueue.registry import registry


def join() -> bool:
    """Let workers find tasks; whether any alias of TASKS is ours."""
    if not any(map(_is_ours, task_backends.settings.values())):
        return False
    if find not in registry.finders:
        registry.finders.append(find)
    return True


def _is_ours(params: dict[str, object]) -> bool:
    try:
        found = import_string(str(params.get("BACKEND")))
    except ImportError:  # the framework says so when it is used
        return False
    return isinstance(found, type) and issubclass(found, JobQueueBackend)
