"""Settings of the test suite, on a server that it starts itself.

``JOBQUEUE_POSTGRES`` chooses the version (18); ``DATABASE_URL`` another server.
``JOBQUEUE_POOL`` lets Django keep a pool of connections.
``JOBQUEUE_THEME`` is an app that changes the looks of the admin, such as ``unfold``.
"""

from __future__ import annotations

import os
from pathlib import Path

from testproject.postgres import Server, database_settings, folder_for

BASE = Path(__file__).resolve().parent.parent
SERVER: Server | None = None

if "DATABASE_URL" not in os.environ:
    version = int(os.environ.get("JOBQUEUE_POSTGRES", "18"))
    # Nothing here survives a power failure, so nothing has to wait for the disk.
    options = {"fsync": "off", "max_connections": "300", "shared_buffers": "256MB"}
    folder = folder_for(f"pg{version}", BASE / ".cache")
    SERVER = Server(folder, version, options).start()
    os.environ["DATABASE_URL"] = SERVER.url()

DATABASES = {"default": database_settings(os.environ["DATABASE_URL"])}
if "JOBQUEUE_POOL" in os.environ:
    DATABASES["default"]["OPTIONS"]["pool"] = {"min_size": 2, "max_size": 8}
if "SAMPLE_SECOND_DATABASE" in os.environ:
    DATABASES["second"] = database_settings(os.environ["SAMPLE_SECOND_DATABASE"])
if "SAMPLE_JOBS_DATABASE" in os.environ:  # the same one by another name
    DATABASES["jobs"] = DATABASES["default"]
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "client": {"BACKEND": "tests.sample.inherited.Client"},
}
SECRET_KEY = "tests"
USE_TZ = True
TIME_ZONE = "UTC"
THEME = os.environ.get("JOBQUEUE_THEME")
INSTALLED_APPS = [
    *([THEME] if THEME else []),
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "rangefilter",
    "django_jobqueue",
    "django_jobqueue.contrib.alerts",
    "django_jobqueue.contrib.console",
    "django_jobqueue.contrib.http",
    "django_jobqueue.contrib.importing",
    "django_jobqueue.contrib.leases",
    "django_jobqueue.contrib.privacy",
    "django_jobqueue.contrib.remote",
    "django_jobqueue.contrib.schedules",
    "django_jobqueue.contrib.transfer",
    "testproject.shop",
    "tests.sample",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "tests.policy.StrictPolicy",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
ROOT_URLCONF = "tests.urls"
STATIC_URL = "static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
TASKS = {
    "default": {"BACKEND": "django_jobqueue.backends.JobQueueBackend", "QUEUES": []},
}
JOBQUEUE = {
    "RELEASE": "tests",
    "SCHEDULES": "SAMPLE_SCHEDULES" in os.environ,  # the shop has some
}
SHOP_TASKS = False
