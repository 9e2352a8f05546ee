"""Addresses that lead to a job wherever it is now."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.admin import AdminSite
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.parts import display
from django_jobqueue.models import ArchivedJob, QueuedJob


def permalink(id: UUID) -> str:
    """The address that leads to a job for as long as the job is kept, whether it is
    queued or archived by then: for logs, chats and error trackers."""
    address: str = reverse("admin:jobqueue_job", args=[id])
    return address


def urls(site: AdminSite) -> list[URLPattern]:
    """The addresses, below that of the queued jobs."""
    return [
        path("find/<uuid:id>/", site.admin_view(job), name="jobqueue_job"),
    ]


def job(request: HttpRequest, id: UUID) -> HttpResponse:
    """Go to a job, where the user may see it. Raises Http404."""
    address = address_of_job(request, id)
    if not address:
        raise Http404
    return HttpResponseRedirect(address)


def address_of_job(request: HttpRequest, id: UUID) -> str:
    """The page of a job; empty if there is none that the user may see. The queue is
    searched twice, because the job may move meanwhile."""
    for model in (QueuedJob, ArchivedJob, QueuedJob):
        if address := address_of_object(request, model, id):
            return address
    return ""


def address_of_object(request: HttpRequest, model: type[Any], key: object) -> str:
    """The page of an object; empty if the user may see no such page."""
    if may_view(request, model) and model._default_manager.filter(pk=key).exists():
        return display.url_of(model._meta.label_lower, key)
    return ""
