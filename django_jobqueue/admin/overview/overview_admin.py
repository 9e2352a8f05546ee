"""The overview in Django's index of pages, and in the menu beside them."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

from django_jobqueue.admin.base import JobQueueAdmin


class OverviewAdmin(JobQueueAdmin):
    """Its only address leads to the front page of the app."""

    def get_urls(self) -> list[URLPattern]:
        """That address, by the name that Django's index asks for."""
        view = self.admin_site.admin_view(self.changelist_view)
        return [path("", view, name=f"{self.url_prefix}_changelist")]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Lead there."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        front = reverse(f"{self.admin_site.name}:app_list", args=[self.opts.app_label])
        return HttpResponseRedirect(front)
