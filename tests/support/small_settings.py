"""Settings of processes that are executed: without the admin, the shop and pages, which
would be most of what they import."""

from tests.settings import *  # noqa: F403

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django_jobqueue",
    "tests.sample",
]
MIDDLEWARE: list[str] = []
TEMPLATES: list[dict[str, object]] = []
ROOT_URLCONF = None
