"""The search of a list of jobs: what a user may search, and names in short."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_jobqueue.admin.base import REVEAL_DATA, VIEW_DATA, may
from django_jobqueue.admin.parts import catalogue
from django_jobqueue.search import IdSearch, SearchError, parse
from django_jobqueue.search.selection import Selection
from django_jobqueue.search.type_names import with_whole_type
from django_jobqueue.text import timezones
from django_jobqueue.text.redaction import is_secret


def understood(
    request: HttpRequest, selection: Selection, query: str
) -> tuple[Selection, Sequence[IdSearch]]:
    """The selection with what was typed, and the ids that were. Raises SearchError."""
    search = parse(query, selection.table, timezones.now())
    names = catalogue.type_names(request)
    terms = [with_whole_type(term, names) for term in search.terms]
    selection = selection.also(*terms)
    check_data(request, selection)
    return selection, search.ids


def check_data(request: HttpRequest, selection: Selection) -> None:
    """Whoever may not see a value must not be able to guess it. Raises SearchError."""
    keys = {
        key for term in selection.terms if term.field == "data" for key in term.path
    }
    if not keys:
        return
    if not may(request, VIEW_DATA):
        raise SearchError(
            _("You may not view the data of jobs, so you cannot search in it.")
        )
    if may(request, REVEAL_DATA):
        return
    sensitive = _sensitive(request, selection)
    secret = sorted(key for key in keys if is_secret(key, sensitive))
    if secret:
        error = _(
            "“%(key)s” is a sensitive key: you may not view its values, so you cannot "
            "search for them. If it is one of other job types only, add “type:”."
        )
        raise SearchError(error % {"key": secret[0]})


def _sensitive(request: HttpRequest, selection: Selection) -> frozenset[str]:
    """The sensitive keys of the job type, or of all if it may be any."""
    named = catalogue.job_types(request, selection.values("type")).values()
    lists = [row.sensitive for row in named] or catalogue.sensitive_keys(request)
    return frozenset(str(key).lower() for keys in lists for key in keys)
