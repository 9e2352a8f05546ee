"""The page of all saved views, and what is done with them: save, change, delete."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from django_jobqueue.admin.actions.row_marks import (
    changed_meanwhile,
    locked,
    unchanged,
)
from django_jobqueue.admin.base import JobQueueAdmin, may, may_view
from django_jobqueue.admin.parts import display
from django_jobqueue.conf import conf
from django_jobqueue.contrib.console import saved_views
from django_jobqueue.contrib.console.admin.view_menu import (
    NAME,
    SEARCH,
    SEARCH_PARAMETERS,
)
from django_jobqueue.contrib.console.admin.visible_views import (
    ADD,
    SHARE,
    QueryError,
    VisibleView,
    may_change,
    name_of,
    parsed,
    query_of,
    replaced,
    visible_views,
)
from django_jobqueue.contrib.console.models import (
    LONGEST_NAME,
    LONGEST_QUERY,
    SavedView,
)
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.text import numbers

MOST: Final = 100  # of a user

Endpoint = Callable[..., HttpResponse]


class NameForm(forms.Form):
    """The name of a view."""

    name = forms.CharField(max_length=LONGEST_NAME)


class ViewedList(NamedTuple):
    """A list that this user may see."""

    name: str
    label: str
    url: str
    parameters: Collection[str]
    views: Sequence[VisibleView] = ()


class SavedViewAdmin(JobQueueAdmin):
    """No list of Django's: lists lead here, and index and menu do not."""

    def get_urls(self) -> list[URLPattern]:
        """The page, and what its forms send."""
        site = self.admin_site

        def address(route: str, view: Endpoint, verb: str) -> URLPattern:
            responds = site.admin_view(partial(view, site=site))
            return path(route, responds, name=f"{self.url_prefix}_{verb}")

        return [
            address("", page, "changelist"),
            address("save/", save, "save"),
            address("edit/", _of_one(edit), "edit"),
            address("delete/", _of_one(delete), "delete"),
        ]

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Its page belongs to the lists."""
        return False


def page(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """All views of all lists that this user may see. Raises PermissionDenied."""
    lists = _lists(request, site)
    if not lists:
        raise PermissionDenied
    owner: Any = site._registry[QueuedJob]
    shown = [
        ViewedList(one.name, one.label, one.url, one.parameters, views)
        for one in lists.values()
        if (views := visible_views(request, one.name, one.parameters))
    ]
    return owner.show(  # type: ignore[no-any-return]
        request,
        "admin/jobqueue_console/saved_views.html",
        title=_("Saved views"),
        lists=shown,
        may_share=may(request, SHARE),
        longest=LONGEST_NAME,
    )


def save(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Save what a list shows, and go back to it. Raises PermissionDenied."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    here = _lists(request, site).get(request.POST.get("list", ""))
    right = SHARE if "shared" in request.POST else ADD
    allowed = may(request, ADD) and may(request, right)
    if here is None or not allowed:
        raise PermissionDenied
    try:
        typed = parsed(request.POST.get("query", ""))
        query = query_of(typed, here.parameters)
    except QueryError as error:
        messages.error(request, _unknown(error.names))
        return HttpResponseRedirect(here.url)
    form = NameForm(request.POST)
    held = _held(request, here.name, form)
    if problem := _problem(request, query, form, held):
        messages.error(request, problem)
    else:
        _save(request, here.name, query, form, held)
    return HttpResponseRedirect(f"{here.url}?{query}" if query else here.url)


def _save(
    request: HttpRequest,
    list: str,
    query: str,
    form: NameForm,
    held: SavedView | None,
) -> None:
    """In place of the view of this name, which stays shared if it was."""
    name = form.cleaned_data["name"]
    saved_views.save(
        list=list,
        name=name,
        query=query,
        by=name_of(request),
        is_shared="shared" in request.POST or (held is not None and held.is_shared),
    )
    text = (
        _("The view “%(name)s” was saved.")
        if held is None
        else _("The view “%(name)s” was replaced.")
    )
    messages.success(request, text % {"name": display.visible(name)})


def _of_one(act: Callable[..., HttpResponse]) -> Endpoint:
    """Act on a view that is as the page showed it, and stays so meanwhile."""

    def respond(request: HttpRequest, site: AdminSite) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        with transaction.atomic(using=conf.database):
            view = _view(request, site)
            if unchanged(request, [view], replaced):
                return act(request, site, view)
            messages.error(request, changed_meanwhile())
            return _back(view, site)

    return respond


def edit(request: HttpRequest, site: AdminSite, view: SavedView) -> HttpResponse:
    """Rename a view, share it, or take that back."""
    form = NameForm(request.POST)
    if not form.is_valid():
        messages.error(request, _name_problem(form))
        return _back(view, site)
    name = form.cleaned_data["name"]
    is_shared = "shared" in request.POST if may(request, SHARE) else view.is_shared
    changed = saved_views.change(
        view.pk,
        list=view.list,
        name=name,
        by=name_of(request),
        is_shared=is_shared,
        was_shared=view.is_shared,
    )
    shown = {"name": display.visible(name)}
    if changed:
        messages.success(request, _("The view “%(name)s” was changed.") % shown)
    else:
        messages.error(request, _("There is another view “%(name)s”.") % shown)
    return _back(view, site)


def delete(request: HttpRequest, site: AdminSite, view: SavedView) -> HttpResponse:
    """Delete a view."""
    saved_views.delete(
        view.pk,
        list=view.list,
        name=view.name,
        by=name_of(request),
        was_shared=view.is_shared,
    )
    shown = {"name": display.visible(view.name)}
    messages.success(request, _("The view “%(name)s” was deleted.") % shown)
    return _back(view, site)


def _lists(request: HttpRequest, site: AdminSite) -> dict[str, ViewedList]:
    """By name, those that this user may see, in the order of their labels."""
    lists = []
    for model, model_admin in site._registry.items():
        if isinstance(model_admin, JobQueueAdmin) and may_view(request, model):
            name = str(model._meta.model_name)
            label = str(model._meta.verbose_name_plural).capitalize()
            url, parameters = model_admin.list_url, model_admin.parameters(request)
            lists.append(ViewedList(name, label, url, parameters))
    if may_view(request, QueuedJob) or may_view(request, ArchivedJob):
        url = reverse("admin:jobqueue_search", current_app=site.name)
        lists.append(ViewedList(SEARCH, _("Search jobs"), url, SEARCH_PARAMETERS))
    return {one.name: one for one in sorted(lists, key=lambda one: one.label)}


def _view(request: HttpRequest, site: AdminSite) -> SavedView:
    """The view that is to be changed. Whoever may not change it does not learn whether
    it is there, and locks nothing. Raises PermissionDenied."""
    sent, lists = request.POST.get("view", ""), _lists(request, site)

    def first(rows: QuerySet[SavedView]) -> SavedView | None:
        view = rows.first()
        allowed = view and may_change(request, view) and view.list in lists
        return view if allowed else None

    if sent.isascii() and sent.isdecimal() and len(sent) < 19:
        row = SavedView._default_manager.filter(pk=int(sent))
        if first(row) and (view := first(locked(row, waits=True))):
            return view
    raise PermissionDenied


def _back(view: SavedView, site: AdminSite) -> HttpResponseRedirect:
    address = reverse(f"admin:{NAME}_changelist", current_app=site.name)
    return HttpResponseRedirect(f"{address}#jq-views-{view.list}")


def _held(request: HttpRequest, list: str, form: NameForm) -> SavedView | None:
    """The user's own view of this name."""
    if not form.is_valid():
        return None
    held = SavedView._default_manager.filter(owner=name_of(request), list=list)
    return held.filter(name=form.cleaned_data["name"]).first()


def _problem(
    request: HttpRequest, query: str, form: NameForm, held: SavedView | None
) -> str:
    """The reason why it cannot be saved; empty if it can."""
    if not query:
        return _("There is nothing to save: filter or search the list first.")
    if len(query) > LONGEST_QUERY:
        return _("These conditions are too long to be saved.")
    if not form.is_valid():
        return _name_problem(form)
    if held is not None:
        # Whoever may no longer share must not change what others see.
        return _unshared(held) if held.is_shared and not may(request, SHARE) else ""
    if SavedView._default_manager.filter(owner=name_of(request)).count() >= MOST:
        text = _("You have %(count)s saved views. Delete one first.")
        return text % {"count": numbers.number(MOST)}
    return ""


def _unshared(view: SavedView) -> str:
    text = _(
        "The view “%(name)s” is shared, and you may not share: choose another name."
    )
    return text % {"name": display.visible(view.name)}


def _name_problem(form: NameForm) -> str:
    return " ".join(map(str, form.errors.get("name") or ()))


def _unknown(names: Sequence[str]) -> str:
    if not names:
        return _("These conditions cannot be saved.")
    text = _("This list has no such filter: %(names)s. Nothing was saved.")
    return text % {"names": display.names(name[:40] for name in names[:5])}
