"""The box that leads to anything by its id or name, and to failures and jobs by words
of their errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from django_jobqueue.admin import permalink
from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.failures.failure_list import searched
from django_jobqueue.admin.parts import catalogue, display
from django_jobqueue.admin.tabs import address_of, tabs
from django_jobqueue.models import (
    ArchivedJob,
    FailureGroup,
    JobType,
    QueuedJob,
)
from django_jobqueue.models.chunked_work import ChunkedWork
from django_jobqueue.rooms import offered
from django_jobqueue.search.type_names import types_like, types_named

LONGEST = 200  # characters of what somebody looks for


def urls(site: AdminSite) -> list[URLPattern]:
    """The addresses, below that of the queued jobs."""
    return [
        path("find/", site.admin_view(jump), name="jobqueue_jump"),
        *permalink.urls(site),
    ]


def jump(request: HttpRequest) -> HttpResponse:
    """Go to what has this id or name, or to the failures or jobs with these words; if
    there is none, to the first page that the user may see, and say so. Raises
    PermissionDenied."""
    text = request.GET.get("to", "").strip()[:LONGEST].replace("\x00", "")
    address = _address_of(request, text)
    if address:
        return HttpResponseRedirect(address)
    back = next((tab.url for tab in tabs(request, "")), None)
    if back is None:
        raise PermissionDenied
    if text:
        message = _("Nothing that you may see has the id or name %(text)s.")
        messages.warning(request, message % {"text": display.visible(text)})
    return HttpResponseRedirect(back)


def _address_of(request: HttpRequest, text: str) -> str:
    id = _id(text)
    if id is not None:
        others: tuple[type[Any], ...] = (FailureGroup, *ChunkedWork.__subclasses__())
        return permalink.address_of_job(request, id) or next(
            (
                address
                for model in others
                if (address := permalink.address_of_object(request, model, id))
            ),
            "",
        )
    if not text:
        return ""
    return (
        _type(request, text, types_named)
        or _of_features(request, text)
        or _jobs_of_value(request, text)
        or _failures_with(request, text)
        or _type(request, text, types_like)
        or _jobs_with(request, text)
    )


def _of_features(request: HttpRequest, text: str) -> str:
    addresses = (lead(request, text) for lead in offered("jumps"))
    return next(filter(None, addresses), "")


def _type(
    request: HttpRequest, text: str, find: Callable[[str, Iterable[str]], list[str]]
) -> str:
    """The page of the only job type that can be meant; empty if there is none."""
    if not may_view(request, JobType):
        return ""
    names = find(text, catalogue.type_names(request))
    return display.url_of("jobtype", names[0]) if len(names) == 1 else ""


def _failures_with(request: HttpRequest, text: str) -> str:
    groups = FailureGroup._default_manager.all()
    if not (may_view(request, FailureGroup) and searched(groups, text).exists()):
        return ""
    return f"{address_of(request, 'failuregroup')}?{urlencode({SEARCH_VAR: text})}"


def _jobs_of_value(request: HttpRequest, text: str) -> str:
    """The searches that a number could mean."""
    return _jobs_with(request, text) if text.isdigit() else ""


def _jobs_with(request: HttpRequest, text: str) -> str:
    if not (may_view(request, ArchivedJob) or may_view(request, QueuedJob)):
        return ""
    return f"{reverse('admin:jobqueue_search')}?{urlencode({SEARCH_VAR: text})}"


def _id(text: str) -> UUID | None:
    try:
        return UUID(text.removeprefix("job_"))
    except ValueError:
        return None
