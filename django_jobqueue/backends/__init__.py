"""The backend for Django's Tasks framework: ``django.tasks`` of Django 6, and on Django
5.2 its backport ``django-tasks``.

::

    TASKS = {"default": {"BACKEND": "django_jobqueue.backends.JobQueueBackend"}}
"""

from django_jobqueue.backends.backend import JobQueueBackend
from django_jobqueue.backends.job_task import JobTask, task
from django_jobqueue.backends.results import JobTaskContext, JobTaskResult

__all__ = [
    "JobQueueBackend",
    "JobTask",
    "JobTaskContext",
    "JobTaskResult",
    "task",
]
