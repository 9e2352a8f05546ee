"""The base of all pages: nothing is added or deleted here, addresses take only the
parameters of the filters, and lists keep their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from django import VERSION
from django.contrib import admin
from django.contrib.admin.options import ShowFacets
from django.contrib.admin.utils import quote, unquote
from django.contrib.admin.views.main import SEARCH_VAR, ChangeList
from django.db import connections, models
from django.forms.widgets import Script
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils.http import urlencode

from django_jobqueue.admin.lists.change_list import PlainChangeList
from django_jobqueue.admin.lists.ranges import parameters_of
from django_jobqueue.admin.lists.time_limit import limited
from django_jobqueue.admin.regions import refreshed
from django_jobqueue.conf import conf
from django_jobqueue.models import AuditEntry

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin

_LIST = "_jobqueue_list"

VIEW_DATA = "view_job_data"
REVEAL_DATA = "reveal_job_data"


class JobQueueAdmin(ModelAdmin):
    """The base of every page of the job queue."""

    # Also of the models of rooms: Django looks for those of their own apps.
    change_list_template = "admin/jobqueue/change_list.html"
    change_form_template = "admin/jobqueue/change_form.html"
    object_history_template = "admin/jobqueue/object_history.html"
    list_per_page = 50
    list_max_show_all = 0
    show_facets = ShowFacets.NEVER  # an aggregate over the table for each choice
    show_full_result_count = False  # a COUNT(*) of the whole table
    sortable_by = ()
    view_on_site = False
    editable: ClassVar[bool] = False
    # Of the list's address, beside filters and search.
    other_parameters: ClassVar[Sequence[str]] = ()

    class Media:
        css: ClassVar[dict[str, Any]] = {"all": ["django_jobqueue/admin.css"]}
        js: ClassVar[Sequence[Any]] = [
            Script("django_jobqueue/live.js", defer=True),
            Script("django_jobqueue/keys.js", defer=True),
            Script("django_jobqueue/copy.js", defer=True),
            Script("django_jobqueue/names.js", defer=True),
        ]

    @property
    def urls(self) -> list[URLPattern]:
        """Addresses whose pages cannot keep the database busy."""
        patterns: list[URLPattern] = self.get_urls()
        for pattern in patterns:
            if isinstance(pattern, URLPattern):
                posts = str(pattern.name).endswith("_changelist")  # a verb that asks
                pattern.callback = refreshed(
                    limited(pattern.callback, self.admin_site, posts=posts)
                )
        return patterns

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """A list that keeps its order."""
        return PlainChangeList

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Of a POST only one: actions ask for the list that Django has made."""
        if request.method != "POST":
            return super().get_changelist_instance(request)
        if not hasattr(request, _LIST):
            setattr(request, _LIST, super().get_changelist_instance(request))
        return getattr(request, _LIST)

    def get_object(self, request: HttpRequest, object_id: str, *args: Any) -> Any:
        """The object with this key; None for text that PostgreSQL cannot compare."""
        if "\x00" in object_id:
            return None
        return super().get_object(request, object_id, *args)

    def show(
        self, request: HttpRequest, template: str, **context: Any
    ) -> TemplateResponse:
        """A page of this site that is not Django's own; ``above`` and ``above_url`` of
        the context name the page that it belongs to."""
        request.current_app = self.admin_site.name
        shown = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "flat_crumbs": VERSION < (6, 1),
            "media": self.media,
            **context,
        }
        path = template if "/" in template else f"admin/jobqueue/{template}"
        return TemplateResponse(request, path, shown)

    def history_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The history, with the way to the audit."""
        context = {"media": self.media, **(extra_context or {})}
        if may_view(request, AuditEntry) and self.model is not AuditEntry:
            address = reverse(f"{self.admin_site.name}:jobqueue_auditentry_changelist")
            query = urlencode({SEARCH_VAR: unquote(object_id)})
            context["audit"] = f"{address}?{query}"
        return super().history_view(request, object_id, context)

    def url_of(self, row: Any) -> str:
        """The address of the page of this object."""
        name = f"{self.admin_site.name}:{self.url_prefix}_change"
        return reverse(name, args=[quote(row.pk)])

    @property
    def list_url(self) -> str:
        """The address of the list."""
        return reverse(f"{self.admin_site.name}:{self.url_prefix}_changelist")

    @property
    def url_prefix(self) -> str:
        """The beginning of the names of this model's addresses."""
        return f"{self.opts.app_label}_{self.opts.model_name}"

    def annotate(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """Give the rows of a page what their columns need, in a fixed number of
        queries."""
        return rows

    def lookup_allowed(
        self, lookup: str, value: str, request: HttpRequest | None = None
    ) -> bool:
        """Only the parameters of the filters.

        Django's own rule takes any column, so that ``?data__order__startswith=3`` would
        tell, guess by guess, what a user may not see.
        """
        return lookup in self._parameters(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """No pages are offered where ``MODE`` lets a project do without the tables."""
        there = connections[conf.database].vendor == "postgresql"
        return there and super().has_module_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Jobs are enqueued, job types declared, workers started: not here."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Finished jobs are pruned, not deleted."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Most pages are read-only, also for superusers."""
        return self.editable and super().has_change_permission(request, obj)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """No rows of Django's: the templates draw what is only shown."""
        return super().get_fieldsets(request, obj) if self.editable else ()

    def parameters(self, request: HttpRequest) -> set[str]:
        """The filters and orders that the list's address may have."""
        search = (SEARCH_VAR,) if self.search_fields else ()
        return {*self._parameters(request), *search, *self.other_parameters}

    def _parameters(self, request: HttpRequest | None) -> set[str]:
        filters: Sequence[Any] = self.get_list_filter(request)  # type: ignore[arg-type]
        names: set[str] = set()
        for one in filters:
            if isinstance(one, tuple):
                names.update(parameters_of(str(one[0])))
            else:
                names.add(one.parameter_name)
        return names


def may(request: HttpRequest, permission: str) -> bool:
    """True if the user has this right of the core, such as ``view_archivedjob``, or of
    a room, with its label."""
    is_whole = "." in permission
    return bool(
        request.user.has_perm(permission if is_whole else f"jobqueue.{permission}")
    )


def may_view(request: HttpRequest, model: type[models.Model]) -> bool:
    """True if the user may follow a link to an object of this model."""
    return may(request, f"{model._meta.app_label}.view_{model._meta.model_name}")
