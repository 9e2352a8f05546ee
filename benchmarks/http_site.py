"""The site of ``benchmarks.http_load``: the HTTP API, and a view with a bare INSERT."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings

if not settings.configured:
    settings.configure(
        ALLOWED_HOSTS=["*"],
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "HOST": os.environ["PGHOST"],
                "USER": os.environ["PGUSER"],
                "NAME": os.environ["PGDATABASE"],
                "CONN_MAX_AGE": None if "KEEP" in os.environ else 0,
            }
        },
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django_jobqueue",
            "django_jobqueue.contrib.http",
        ],
        JOBQUEUE={"HTTP_REQUIRE_TLS": False, "HTTP_LONG_POLLS": 250},
        MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
        ROOT_URLCONF=__name__,
        SECRET_KEY="benchmark",
        USE_TZ=True,
    )

import django  # noqa: E402

django.setup()

from django.core.asgi import get_asgi_application  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.urls import include, path  # noqa: E402

from benchmarks.bare_view import bare  # noqa: E402
from django_jobqueue import job, remote_job  # noqa: E402


@job(name="load.keep")
def keep(a: int, b: str) -> None:
    """Nothing works on these."""


fetch = remote_job("load.fetch")


urlpatterns: list[Any] = [
    path("bare", bare, {"job_type": keep.name}),
    path("jobqueue/", include("django_jobqueue.contrib.http.urls")),
]
application = get_wsgi_application()
asgi = get_asgi_application()
