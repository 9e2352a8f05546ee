"""Settings of processes that are executed: without the admin, the shop and pages, which
would be most of what they import. Workers run without all that; the engine of templates
is there, as in any new project."""

from tests.settings import *  # noqa: F403

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django_jobqueue",
    "django_jobqueue.contrib.leases",
    "tests.sample",
]
MIDDLEWARE: list[str] = []
ROOT_URLCONF = None
