"""Addresses that lead to a job wherever it is now, and to anything by its name."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.tabs import tabs
from django_jobqueue.models import ArchivedJob, FailureGroup, JobType, QueuedJob

LONGEST = 200  # characters of what somebody looks for


def permalink(id: UUID) -> str:
    """The address that leads to a job for as long as the job is kept, whether it is
    queued or archived by then: for logs, chats and error trackers."""
    address: str = reverse("admin:jobqueue_job", args=[id])
    return address


def urls(site: AdminSite) -> list[URLPattern]:
    """The addresses, below that of the queued jobs."""
    return [
        path("find/", site.admin_view(jump), name="jobqueue_jump"),
        path("find/<uuid:id>/", site.admin_view(job), name="jobqueue_job"),
    ]


def job(request: HttpRequest, id: UUID) -> HttpResponse:
    """Go to a job, where the user may see it. Raises Http404."""
    address = _job(request, id)
    if not address:
        raise Http404
    return HttpResponseRedirect(address)


def jump(request: HttpRequest) -> HttpResponse:
    """Go to the job, failure group or job type of this id or name; if there is none,
    to the first page that the user may see, and say so. Raises PermissionDenied."""
    text = request.GET.get("to", "").strip()[:LONGEST].replace("\x00", "")
    address = _found(request, text)
    if address:
        return HttpResponseRedirect(address)
    back = next((tab.url for tab in tabs(request, "")), None)
    if back is None:
        raise PermissionDenied
    if text:
        said = _(
            "There is no job, failure group or job type %(text)s that you may see."
        )
        messages.warning(request, said % {"text": display.visible(text)})
    return HttpResponseRedirect(back)


def _found(request: HttpRequest, text: str) -> str:
    id = _id(text)
    if id is not None:
        return _job(request, id) or _object(request, FailureGroup, id)
    return _object(request, JobType, text) if text else ""


def _job(request: HttpRequest, id: UUID) -> str:
    """The page of a job; empty if there is none that the user may see. It is looked
    for in the queue twice, since it may move while it is looked for."""
    for model in (QueuedJob, ArchivedJob, QueuedJob):
        if address := _object(request, model, id):
            return address
    return ""


def _object(request: HttpRequest, model: type[Any], key: object) -> str:
    if may_view(request, model) and model._default_manager.filter(pk=key).exists():
        return display.url_of(str(model._meta.model_name), key)
    return ""


def _id(text: str) -> UUID | None:
    try:
        return UUID(text.removeprefix("job_"))
    except ValueError:
        return None
