"""A site of one file that uses the installed package: its system checks, migrations,
commands, static files, and every list of its admin."""

from __future__ import annotations

import os
from importlib.resources import files

import django
from django.conf import settings
from django.core.management import call_command
from django.urls import URLPattern, path, reverse

urlpatterns: list[URLPattern] = []

APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "rangefilter",
    "django_jobqueue",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
PROCESSORS = [
    "django.template.context_processors.request",
    "django.contrib.auth.context_processors.auth",
    "django.contrib.messages.context_processors.messages",
]


def main() -> None:
    """Use everything that the package brings besides its code."""
    settings.configure(
        ALLOWED_HOSTS=["testserver"],
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "HOST": os.environ["DATABASE_HOST"],
                "NAME": "postgres",
                "USER": "postgres",
            }
        },
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        INSTALLED_APPS=APPS,
        MIDDLEWARE=MIDDLEWARE,
        ROOT_URLCONF=__name__,
        SECRET_KEY="only-for-this-try",
        STATIC_URL="static/",
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {"context_processors": PROCESSORS},
            }
        ],
        USE_TZ=True,
    )
    django.setup()
    package = files("django_jobqueue")
    assert "site-packages" in str(package), package
    assert package.joinpath("py.typed").is_file()
    call_command("migrate", verbosity=0)
    call_command("check", fail_level="WARNING")
    call_command("jobqueue", "status")
    print(f"{_open_admin()} lists of the admin open.")


def _open_admin() -> int:
    """Open the list of each model; returns how many there are."""
    from django.contrib import admin
    from django.contrib.auth.models import User
    from django.contrib.staticfiles import finders
    from django.test import Client

    urlpatterns.append(path("admin/", admin.site.urls))
    assert finders.find("django_jobqueue/admin.css")
    client = Client()
    client.force_login(User.objects.create_superuser("admin"))
    models = [m for m in admin.site._registry if m._meta.app_label == "jobqueue"]
    for model in models:
        page = reverse(f"admin:jobqueue_{model._meta.model_name}_changelist")
        answer = client.get(page, follow=True)  # the overview leads to the index
        assert answer.status_code == 200, (page, answer.status_code)
    return len(models)


if __name__ == "__main__":
    main()
