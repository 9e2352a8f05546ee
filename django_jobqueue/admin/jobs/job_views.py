"""Pages about one job that have an address of their own, below that of its page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from django import VERSION
from django.contrib import messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from django_jobqueue.admin.base import may
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.verbs.actions import OperatedAdmin


class JobView:
    """One such page. A subclass says who may see it and what it answers."""

    name: ClassVar[str]  # in the address
    label: ClassVar[Any]  # on the button
    rights: ClassVar[Sequence[str]] = ()  # besides that of seeing the job
    is_button: ClassVar[bool] = True

    def applies_to(self, job: Any) -> bool:
        """Whether the page of this job offers it."""
        return True

    def respond(
        self, model_admin: JobViews, request: HttpRequest, job: Any
    ) -> HttpResponse:
        """Answer for this job, to a user who may."""
        raise NotImplementedError


class JobViews(OperatedAdmin):
    """Jobs with such pages."""

    views: ClassVar[Sequence[JobView]] = ()

    class Media:
        css: ClassVar[dict[str, Any]] = {
            "all": ["django_jobqueue/traceback.css", "django_jobqueue/job.css"]
        }

    def get_urls(self) -> list[URLPattern]:
        """An address for each, before Django's own."""
        own = [
            path(
                f"<path:object_id>/{view.name}/",
                self.admin_site.admin_view(partial(self.look, view=view)),
                name=f"{self._prefix}_{view.name}",
            )
            for view in self.views
        ]
        return [*own, *super().get_urls()]

    def look(
        self, request: HttpRequest, object_id: str, *, view: JobView
    ) -> HttpResponse:
        """Check the rights, find the job, and let the page answer."""
        if not self.may_see(request, view):
            raise PermissionDenied
        job = self.get_object(request, unquote(object_id))
        if job is None:
            return self._gone(request, object_id)
        return view.respond(self, request, job)

    def _gone(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Where Django, or the job's own admin, leads from what is not here."""
        response: HttpResponse = self._get_obj_does_not_exist_redirect(  # type: ignore[attr-defined]
            request, self.opts, object_id
        )
        return response

    def may_see(self, request: HttpRequest, view: JobView) -> bool:
        """Whether the user may see jobs, and this page of them."""
        return self.has_view_permission(request) and all(
            may(request, right) for right in view.rights
        )

    def address_of(self, view: JobView, job: Any) -> str:
        """The address of this page of this job."""
        name = f"{self.admin_site.name}:{self._prefix}_{view.name}"
        address: str = reverse(name, args=[quote(job.pk)])
        return address

    def buttons(self, request: HttpRequest, row: Any) -> list[dict[str, Any]]:
        """The verbs, and then these pages."""
        return [
            *super().buttons(request, row),
            *(
                {"label": view.label, "url": self.address_of(view, row)}
                for view in self.views
                if view.is_button
                and view.applies_to(row)
                and self.may_see(request, view)
            ),
        ]

    def back_to(
        self, request: HttpRequest, job: Any, text: str, level: int = messages.SUCCESS
    ) -> HttpResponse:
        """To the page of the job, queued or archived, with a message."""
        self.message_user(request, text, level)
        model = str(job._meta.model_name)
        return HttpResponseRedirect(display.url_of(model, job.pk))

    def render(
        self, request: HttpRequest, template: str, job: Any, **context: Any
    ) -> TemplateResponse:
        """A page of this site about this job."""
        name = display.visible(str(job.job_type_id))
        above = f"{name} {display.short_id(job.pk)}"
        url = self._url(job)
        return page_below(
            self, request, template, above=above, above_url=url, **context
        )


def page_below(
    model_admin: OperatedAdmin, request: HttpRequest, template: str, **context: Any
) -> TemplateResponse:
    """A page below that of an object, which ``above`` names and ``above_url`` is."""
    site = model_admin.admin_site
    request.current_app = site.name
    shown = {
        **site.each_context(request),
        "opts": model_admin.opts,
        "flat_crumbs": VERSION < (6, 1),
        "media": model_admin.media,
        **context,
    }
    return TemplateResponse(request, f"admin/jobqueue/{template}", shown)
