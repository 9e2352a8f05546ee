"""Settings of the shop, a small project that uses the job queue as users would.

``DATABASE_URL`` names the database. Without it an embedded PostgreSQL 18 is started,
unless it runs already; its data are in ``.demo``, with the files that the shop makes.
"""

from __future__ import annotations

import os
from pathlib import Path

import django

from testproject.postgres import Server, database_settings, folder_for

BASE = Path(__file__).resolve().parent.parent
FILES = BASE / ".demo"

if not os.environ.get("DATABASE_URL"):
    # Child processes find the same server by this.
    os.environ["DATABASE_URL"] = Server(folder_for("pg18", FILES)).start().url()

SECRET_KEY = "only-for-this-demo-and-known-to-everybody"
DEBUG = os.environ.get("DEBUG", "1") == "1"
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
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
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
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
ROOT_URLCONF = "testproject.urls"
WSGI_APPLICATION = "testproject.wsgi.application"
DATABASES = {"default": database_settings(os.environ["DATABASE_URL"])}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "static/"
STATIC_ROOT = FILES / "static"
MEDIA_URL = "media/"
MEDIA_ROOT = FILES / "media"

# Every mail becomes a file.
DEFAULT_FROM_EMAIL = "Harbour Goods <shop@harbour.example>"
MAIL_FOLDER = FILES / "mail"
MAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
if django.VERSION >= (6, 1):
    MAILERS = {
        "default": {"BACKEND": MAIL_BACKEND, "OPTIONS": {"file_path": MAIL_FOLDER}}
    }
else:
    EMAIL_BACKEND = MAIL_BACKEND
    EMAIL_FILE_PATH = MAIL_FOLDER

# Whether the shop's work is declared with Django's @task: see settings_tasks.
SHOP_TASKS = False

# Where the workers reach the shop, and what they sign webhooks with.
SHOP_URL = os.environ.get("SHOP_URL", "http://127.0.0.1:8000")
WEBHOOK_SECRET = "only-for-this-demo"

JOBQUEUE = {
    "PROCESSES": 2,
    "THREADS": 4,
    "GRACE": 10,
    "RETENTION": {"succeeded": 86_400 * 30},
    "RELEASE": "demo",
    "PROJECT_ROOTS": [str(BASE / "testproject")],
    "DUMP_DIR": str(FILES),
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(process)d %(levelname)s %(name)s %(message)s"}
    },
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": "line"},
    },
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "django_jobqueue": {"level": "INFO"},
        "testproject": {"level": "INFO"},
    },
}
