"""Pages that cannot keep the database busy: a bound on each statement, and a page that
says what to do when one took too long."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, NamedTuple

from django.contrib.admin import AdminSite
from django.contrib.admin.views.main import SEARCH_VAR
from django.db import OperationalError, transaction
from django.http import HttpRequest, HttpResponse
from django.template.response import SimpleTemplateResponse, TemplateResponse
from django.utils.translation import gettext as _

from django_jobqueue.admin.parts.display import visible
from django_jobqueue.conf import conf
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.time_budget import is_too_long, lower_limit
from django_jobqueue.text import numbers

View = Callable[..., HttpResponse]

READING: Final = ("GET", "HEAD")
PLACES: Final = ("after", "before", "since", "p")  # of pages; they narrow nothing


class Condition(NamedTuple):
    """A condition of the page, and the address of the page without it."""

    name: str
    value: str
    without: str


def limited(view: View, site: AdminSite, *, posts: bool = False) -> View:
    """The view with a bound on each statement, those of its template included.

    What a page reads and shows is one transaction, as the bound is one's property. A
    POST is left alone, unless it only asks: its work has transactions of its own.
    """

    @wraps(view)
    def bounded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method not in READING and not posts:
            return view(request, *args, **kwargs)
        try:
            with transaction.atomic(using=conf.database):
                milliseconds = round(conf.admin_statement_timeout * 1_000)
                lower_limit(DjangoDatabase(), milliseconds)
                response = view(request, *args, **kwargs)
                if isinstance(response, SimpleTemplateResponse):
                    response.render()
                return response
        except OperationalError as error:
            if not is_too_long(error):
                raise
            return _too_long(request, site)

    return bounded


def _too_long(request: HttpRequest, site: AdminSite) -> HttpResponse:
    context = {
        **site.each_context(request),
        "title": _("This took too long"),
        "seconds": numbers.rounded(conf.admin_statement_timeout),
        "conditions": _conditions(request),
    }
    request.current_app = site.name
    page = "admin/jobqueue/too_long.html"
    return TemplateResponse(request, page, context, status=503)


def _conditions(request: HttpRequest) -> list[Condition]:
    conditions = []
    for name, value in request.GET.dict().items():
        if name not in PLACES and value:
            others = request.GET.copy()
            for gone in (name, *PLACES):
                others.pop(gone, None)
            shown = _("search") if name == SEARCH_VAR else visible(name)
            conditions.append(
                Condition(shown, visible(str(value)), f"?{others.urlencode()}")
            )
    return conditions
