"""The addresses of the HTTP API:
``path("jobqueue/", include("django_jobqueue.contrib.http.urls"))``."""

from __future__ import annotations

from importlib.util import find_spec

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.urls import URLPattern, re_path
from django.views.decorators.csrf import csrf_exempt

if not apps.is_installed("django_jobqueue.contrib.http"):
    raise ImproperlyConfigured(
        "The HTTP API keeps tokens: add 'django_jobqueue.contrib.http' to "
        "INSTALLED_APPS, and run manage.py migrate."
    )

from django_jobqueue.contrib.http.door import door, nothing_here
from django_jobqueue.contrib.http.no_extra import no_extra

app_name = "jobqueue_http"
VERSIONS = r"^v[0-9]+(/|$)"  # other addresses are those of the site

if find_spec("ninja") is None:
    urlpatterns = [re_path(VERSIONS, csrf_exempt(no_extra))]
else:
    from django_jobqueue.contrib.http.api import build

    def _literals_first(pattern: URLPattern) -> list[bool]:
        """``…/<id>/replay`` goes before ``…/<job_type>/<id>``."""
        return [part.startswith("<") for part in str(pattern.pattern).split("/")]

    urlpatterns = []
    for pattern in sorted(build().urls[0], key=_literals_first):
        if pattern.name != "api-root":
            pattern.callback = door(pattern.callback)
            urlpatterns.append(pattern)
    urlpatterns.append(re_path(VERSIONS, door(nothing_here)))
