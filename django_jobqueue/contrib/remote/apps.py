"""The app of remote handlers: label ``jobqueue_remote``; no tables, as endpoints and
remote workers are rows of workers."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from django_jobqueue.rooms import Room


class RemoteConfig(Room):
    """Adds what does the jobs of ``remote_job()``, and what looks after them."""

    default = True
    name = "django_jobqueue.contrib.remote"
    label = "jobqueue_remote"
    verbose_name = _("Job queue: remote handlers")
    checks = ("django_jobqueue.contrib.remote.checks",)
    handlers = {"endpoint": "django_jobqueue.contrib.remote.delivery.deliver"}
    declared = ("django_jobqueue.contrib.remote.endpoint_watch.declared",)
    gathered = ("django_jobqueue.contrib.remote.endpoint_rows.unwritten_answers",)
    maintenance_threads = ("django_jobqueue.contrib.remote.endpoint_watch.thread",)
    metrics = ("django_jobqueue.contrib.remote.endpoint_rows.METRICS",)
    examinations = {
        "endpoints": "django_jobqueue.contrib.remote.examinations.settings",
        "endpoints-answers": "django_jobqueue.contrib.remote.examinations.rows",
    }
    http_routes = ("django_jobqueue.contrib.remote.worker_routes",)
    above_lists = ("django_jobqueue.contrib.remote.endpoint_cells.above",)
    more_rows = {"workers": "django_jobqueue.contrib.remote.endpoints.ENDPOINTS"}
    row_pages = {"endpoint": "django_jobqueue.contrib.remote.endpoint_cells.PAGE"}
