"""The search of a list of jobs: what a user may search, and names and ids in short."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from django.db.models import CharField, Q
from django.db.models.functions import Cast
from django.db.models.query import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_jobqueue.admin.base import REVEAL_DATA, VIEW_DATA, may
from django_jobqueue.admin.parts import catalogue
from django_jobqueue.search import IdSearch, SearchError, parse
from django_jobqueue.search.selection import Selection, Term
from django_jobqueue.text import timezones
from django_jobqueue.text.redaction import is_secret

MOST_NAMES: Final = 10  # of job types that may be meant


def understood(
    request: HttpRequest, selection: Selection, query: str
) -> tuple[Selection, Sequence[IdSearch]]:
    """The selection with what was typed, and the ids that were. Raises SearchError."""
    search = parse(query, selection.table, timezones.now())
    names = catalogue.type_names(request)
    terms = [_with_whole_type(term, names) for term in search.terms]
    selection = selection.also(*terms)
    check_data(request, selection)
    return selection, search.ids


def matching_ids(
    queryset: QuerySet[Any], searches: Sequence[IdSearch], most: int
) -> tuple[UUID, ...]:
    """The ids of jobs that have one of these, at most so many.

    Looked up by themselves, since a list in another order might walk all of its index
    for a few of them.
    """
    if all(search.is_exact for search in searches):
        return tuple(dict.fromkeys(search.first for search in searches))[:most]
    rows = queryset.order_by().annotate(id_text=Cast("pk", CharField()))
    wanted = Q()
    for search in searches:
        ends = Q(id_text__endswith=search.ending) if search.ending else Q()
        wanted |= Q(pk__range=(search.first, search.last)) & ends
    return tuple(rows.filter(wanted).values_list("pk", flat=True)[:most])


def _with_whole_type(term: Term, names: Iterable[str]) -> Term:
    """``type:receipt`` is the only job type whose name has that. A word alone is a job
    type only if it is its name, or the last part of it; else it is looked for in all
    texts, since "not" may be in one name and in many errors."""
    if term.field == "text":
        named = catalogue.types_named(term.value, names)
        return Term("type", named[0]) if len(named) == 1 else term
    if term.field != "type":
        return term
    matches = catalogue.types_like(term.value, names)
    if len(matches) == 1:
        return Term("type", matches[0])
    if not matches:
        return term
    error = _("More than one job type has “%(name)s” in its name: %(names)s.")
    shown = ", ".join(matches[:MOST_NAMES]) + (" …" if matches[MOST_NAMES:] else "")
    raise SearchError(error % {"name": term.value, "names": shown})


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
