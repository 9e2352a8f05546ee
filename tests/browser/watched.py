"""A page of a project that shows how far a job is, and the addresses around it."""

from __future__ import annotations

from uuid import UUID

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template import Context, Template
from django.urls import include, path

PAGE = Template(
    """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Import</title></head>
<body><h1>Import</h1>
{% load job_progress %}
{% job_progress id label="Your customers" url=url reload=reload %}
</body>
</html>"""
)


def watch(request: HttpRequest, id: UUID) -> HttpResponse:
    """How far this job is; ``?url=`` and ``?reload=1`` say what comes at the end."""
    shown = {
        "id": id,
        "url": request.GET.get("url", ""),
        "reload": "reload" in request.GET,
    }
    return HttpResponse(PAGE.render(Context(shown)))


def ready(request: HttpRequest) -> HttpResponse:
    """Where somebody wants to be at the end."""
    return HttpResponse("<!doctype html><title>Ready</title><p>All are imported.</p>")


urlpatterns = [
    path("admin/", admin.site.urls),
    path("jobs/", include("django_jobqueue.urls")),
    path("watch/<uuid:id>/", watch),
    path("ready/", ready),
]
