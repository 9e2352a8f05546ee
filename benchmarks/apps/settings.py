"""Django's settings, the same for all systems that use it but for their app."""

from __future__ import annotations

import os

APP = os.environ["BENCH_APP"]
SYSTEM_APPS = {
    "django_jobqueue_app": ["django_jobqueue", "benchmarks.apps"],
    "soak_app": ["django_jobqueue", "benchmarks.soak"],
    "django_tasks_db_app": ["django_tasks_db"],
    "django_ox_app": ["django_ox"],
}
TASK_BACKENDS = {
    "django_tasks_db_app": "django_tasks_db.DatabaseBackend",
    "django_ox_app": "django_ox.backend.OxBackend",
}

SECRET_KEY = "only-for-benchmarks"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    *SYSTEM_APPS[APP],
]
if APP in TASK_BACKENDS:
    TASKS = {"default": {"BACKEND": TASK_BACKENDS[APP], "QUEUES": ["default"]}}

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ["PGHOST"],
        "USER": os.environ["PGUSER"],
        "NAME": os.environ["PGDATABASE"],
        "CONN_MAX_AGE": None,  # as Django advises for processes that live long
    }
}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
}
