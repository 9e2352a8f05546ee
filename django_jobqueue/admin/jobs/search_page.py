"""One search over queued and archived jobs; and what a bare value could mean."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

from django.contrib.admin import AdminSite
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import URLPattern, reverse
from django.urls import path as address
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from django_jobqueue.admin.base import REVEAL_DATA, VIEW_DATA, may, may_view
from django_jobqueue.admin.failures.failure_list import searched
from django_jobqueue.admin.jobs.job_search import understood
from django_jobqueue.admin.lists.counts import count
from django_jobqueue.admin.lists.selected import KnownIndexes, matching
from django_jobqueue.admin.lists.time_limit import limited
from django_jobqueue.admin.parts import catalogue, display
from django_jobqueue.models import ArchivedJob, FailureGroup, JobType, QueuedJob
from django_jobqueue.search import SearchError
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.search.tokens import quoted, tokens
from django_jobqueue.search.type_names import types_like
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading.value_search import MOST_JOBS, keys_with
from django_jobqueue.text import data_summary, numbers
from django_jobqueue.text.redaction import is_secret

NAME: Final = "jobqueue_search"
MOST_ROWS: Final = 20  # of each table
MOST_OTHERS: Final = 10  # job types, failure groups
MOST_INDEXES: Final = 20
MOST_NAMED: Final = 5  # keys of data
LONGEST: Final = 200  # characters of a value
TABLES: Final[tuple[tuple[type[models.Model], Table], ...]] = (
    (QueuedJob, Table.QUEUED),
    (ArchivedJob, Table.ARCHIVED),
)


class Meaning(NamedTuple):
    """A search that a value could mean, and how many jobs it finds."""

    text: str
    url: str
    queued: str
    archived: str


class Row(NamedTuple):
    """A job that was found."""

    job: Any
    summary: Any
    state: Any
    when: Any


@dataclass(frozen=True, slots=True)
class TableResult:
    """The first jobs of a table."""

    title: Any
    count: str
    rows: Sequence[Row]
    url: str  # of the list
    back_to: str  # how far was searched; empty if everything was
    older: str  # the list, from there on
    problem: str


class Page(NamedTuple):
    """All of it."""

    query: str
    meanings: Sequence[Meaning]
    others: Sequence[tuple[str, str]]  # job types and failure groups
    tables: Sequence[TableResult]
    examined: str
    is_cut_off: bool  # not all meanings were looked for in time


def urls(site: AdminSite) -> list[URLPattern]:
    """Its address, below that of the queued jobs."""
    view = limited(site.admin_view(partial(page, site=site)), site)
    return [address("search/", view, name=NAME)]


def url_of(query: str) -> str:
    """The address of this search."""
    return f"{reverse(f'admin:{NAME}')}?{urlencode({SEARCH_VAR: query})}"


def page(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Search, in what this user may see. Raises PermissionDenied."""
    if not any(may_view(request, model) for model, _table in TABLES):
        raise PermissionDenied
    query = request.GET.get(SEARCH_VAR, "").replace("\x00", "").strip()
    meanings, is_cut_off = _meanings(request, query)
    shown = Page(
        query=query,
        meanings=meanings,
        others=list(_others(request, query)),
        tables=list(_tables(request, site)) if query else [],
        examined=numbers.number(MOST_JOBS),
        is_cut_off=is_cut_off,
    )
    owner: Any = site._registry[QueuedJob]
    return owner.show(  # type: ignore[no-any-return]
        request, "search.html", title=_("Search jobs"), search=shown
    )


def value_of(query: str) -> str:
    """The only word of the query, if it is a bare one; else nothing."""
    try:
        words = list(tokens(query))
    except SearchError:
        return ""
    if len(words) != 1 or words[0].name or len(words[0].value) > LONGEST:
        return ""
    return words[0].value


def _meanings(request: HttpRequest, query: str) -> tuple[list[Meaning], bool]:
    """The keys of data that have this value; whether that is not all of them."""
    value = value_of(query)
    if not value or not may(request, VIEW_DATA):
        return [], False
    counts: dict[str, dict[Table, str]] = {}
    is_cut_off = False
    for model, table in TABLES:
        if not may_view(request, model):
            continue
        matched = keys_with(DjangoDatabase(), table, value)
        is_cut_off = is_cut_off or matched is None
        for keys, jobs in matched or ():
            if not _is_hidden(request, keys):
                term = _term(keys, value)
                counts.setdefault(term, {})[table] = numbers.number(jobs)
        if table is Table.ARCHIVED:
            for term, jobs_text in _indexed(request, value):
                counts.setdefault(term, {})[table] = jobs_text
    for path in _named_keys(request, value):
        counts.setdefault(_term(path, value), {})
    none = "" if is_cut_off else numbers.number(0)
    return [
        Meaning(
            text=display.visible(term),
            url=url_of(term),
            queued=of.get(Table.QUEUED, none),
            archived=of.get(Table.ARCHIVED, none),
        )
        for term, of in counts.items()
    ], is_cut_off


def _indexed(request: HttpRequest, value: str) -> Iterable[tuple[str, str]]:
    """The matches in the indexes of job types, among all archived jobs."""
    rows = JobType.objects.exclude(indexed=[]).order_by("name")
    declared = (
        (name, tuple(str(path).split(".")))
        for name, paths in rows.values_list("name", "indexed")
        if isinstance(paths, list)
        for path in paths
    )
    known = KnownIndexes()
    for name, path in list(declared)[:MOST_INDEXES]:
        if _is_hidden(request, path):
            continue
        chosen = Selection(
            Table.ARCHIVED, (Term("type", name), Term("data", value, path=path))
        )
        if known.of(chosen, chosen.terms[1]) is None:
            continue
        jobs = count(matching(ArchivedJob.objects.all(), chosen, known))
        if jobs:
            shown = numbers.number(jobs) if type(jobs) is int else str(jobs)
            yield f"type:{name} {_term(path, value)}", shown


def _named_keys(request: HttpRequest, value: str) -> list[tuple[str, ...]]:
    """The keys that the summaries of most job types name: what they find of a number
    may be older than the jobs that were looked at."""
    if not any(character.isdigit() for character in value):
        return []
    named: Counter[tuple[str, ...]] = Counter()
    for template, types in catalogue.summary_templates():
        for path in data_summary.paths_of(template):
            named[path] += types
    paths = (path for path, _count in named.most_common())
    return list(islice((p for p in paths if not _is_hidden(request, p)), MOST_NAMED))


def _term(path: Iterable[str], value: str) -> str:
    keys = ".".join(
        key if key.isidentifier() else json.dumps(key, ensure_ascii=False)
        for key in path
    )
    return f"data.{keys}:{value if value.isalnum() else quoted(value)}"


def _is_hidden(request: HttpRequest, path: Iterable[str]) -> bool:
    """True if a key is sensitive, and this user may not see its values."""
    if may(request, REVEAL_DATA):
        return False
    lists = catalogue.sensitive_keys(request)
    sensitive = {str(key).lower() for keys in lists for key in keys}
    return any(is_secret(key, sensitive) for key in path)


def _others(request: HttpRequest, query: str) -> Iterable[tuple[str, str]]:
    """Job types with this in their names, and failure groups with these words."""
    if not query or len(query) > LONGEST:
        return
    if may_view(request, JobType):
        names = types_like(query, catalogue.type_names(request))
        for name in names[:MOST_OTHERS]:
            shown = _("Job type %(name)s") % {"name": display.visible(name)}
            yield shown, display.url_of("jobtype", name)
    if may_view(request, FailureGroup):
        groups = searched(FailureGroup.objects.order_by("-last_seen"), query)
        for group in groups[:MOST_OTHERS]:
            shown = _("Failures %(name)s") % {"name": display.visible(str(group))}
            yield shown, display.url_of("failuregroup", group.pk)


def _tables(request: HttpRequest, site: AdminSite) -> Iterable[TableResult]:
    for model, table in TABLES:
        if may_view(request, model):
            yield _result_of(request, site, model, table)


def _result_of(
    request: HttpRequest, site: AdminSite, model: type[models.Model], table: Table
) -> TableResult:
    """The first page of the list, without its filters."""
    owner: Any = site._registry[model]
    query = request.GET[SEARCH_VAR]
    searching = copy(request)  # of its parameters the list knows one
    searching.GET = QueryDict(urlencode({SEARCH_VAR: query}))
    title = str(model._meta.verbose_name_plural).capitalize()
    address = f"{owner.list_url}?{urlencode({SEARCH_VAR: query})}"
    try:
        understood(request, Selection(table), query)
        listed: Any = owner.get_changelist_instance(searching)
    except (SearchError, IncorrectLookupParameters) as error:
        return TableResult(title, "", (), "", "", "", display.visible(str(error)))
    rows = list(listed.result_list)
    is_looking = listed.searched_back_to is not None
    return TableResult(
        title=title,
        count=listed.count_text,
        rows=[row_of(owner, job, table) for job in rows[:MOST_ROWS]],
        url=address,
        back_to=listed.searched_back_to_time if is_looking else "",
        older=owner.list_url + listed.search_older_link if is_looking else "",
        problem="",
    )


def row_of(owner: Any, job: Any, table: Table) -> Row:
    """A job that the list has annotated, in the table of a search."""
    is_queued = table is Table.QUEUED
    text = display.visible(job.job_type_id)
    model = "queuedjob" if is_queued else "archivedjob"
    return Row(
        job=display.link(model, job.pk, text),
        summary=job.row_context.summary or display.short_id(job.pk),
        state=owner.state(job),
        when=display.full_moment(job.run_after if is_queued else job.finished_at),
    )
