"""Filters that ask no table for its distinct values, and never drop what was typed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar
from uuid import UUID

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.views.main import ChangeList
from django.db.models.query import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.lists.active_filters import Chip, Tab
from django_jobqueue.admin.parts import catalogue
from django_jobqueue.admin.parts.display import visible
from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.search import parse
from django_jobqueue.search.selection import SelectionError, Table, Term
from django_jobqueue.search.tokens import quoted
from django_jobqueue.search.type_names import types_like
from django_jobqueue.stats.usual_job_types import usual_job_types
from django_jobqueue.text import timezones


class ChoiceFilter(SimpleListFilter):
    """One of a few values, as links; of many, as a list to choose from; of hundreds, as
    a field to type in, beside those that are used most."""

    template = "admin/jobqueue/choice_filter.html"
    parameter_name: str
    most_links = 12
    most_options = 100
    names_url = ""  # suggests what to type
    folded: ClassVar[bool] = False  # unless it is used

    def __init__(
        self, request: HttpRequest, params: Any, model: Any, model_admin: Any
    ) -> None:
        super().__init__(request, params, model, model_admin)
        self.is_typed = len(self.lookup_choices) > self.most_options
        if self.is_typed:
            self.offer_few(request)

    def offer_few(self, request: HttpRequest) -> None:
        """Choose links where there are too many values for a list."""
        self.lookup_choices = []

    def has_output(self) -> bool:
        """A filter that is in use is always shown."""
        return self.is_typed or bool(self.lookup_choices) or self.value() is not None

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows with the chosen value."""
        value = self.value()
        if value is None:
            return queryset
        if "\x00" in value:
            return queryset.none()
        return self.narrowed(queryset, value)

    def narrowed(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """The rows of ``queryset`` that have this value."""
        return queryset.filter(**{self.parameter_name: value})

    def chips(self, changelist: ChangeList) -> Iterator[Chip]:
        """The chosen value in words."""
        value = self.value()
        if value is not None:
            labels = {str(name): label for name, label in self.lookup_choices}
            without = changelist.get_query_string({self.parameter_name: None})
            yield Chip(self.title, str(labels.get(value, visible(value))), without)

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """The choices; one that is in use is among them."""
        value = self.value()
        self.others = [
            (name, each)
            for name, values in changelist.filter_params.items()
            if name != self.parameter_name
            for each in values
        ]
        known = list(self.lookup_choices)
        if value is not None and value not in [str(name) for name, label in known]:
            known.append((value, visible(value)))
        yield {
            "selected": value is None,
            "query_string": changelist.get_query_string(remove=[self.parameter_name]),
            "display": _("All"),
            "value": "",
        }
        for name, label in known:
            yield {
                "selected": value == str(name),
                "query_string": changelist.get_query_string(
                    {self.parameter_name: name}
                ),
                "display": label,
                "value": name,
            }


class TermFilter(ChoiceFilter):
    """One value of a field that jobs are selected by."""

    selects: ClassVar[str]  # the field of the selection

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """All: the list goes by the terms of its filters."""
        return queryset

    def terms(self, table: Table) -> Sequence[Term]:
        """The chosen value. Raises SelectionError for one that cannot be."""
        value = self.value()
        return () if value is None else (Term(self.selects, self.meant(value)),)

    def meant(self, value: str) -> Any:
        """The value to compare with. Raises SelectionError."""
        return value


class TabFilter(TermFilter):
    """One of a few states, as tabs above the list."""

    template = "admin/jobqueue/no_filter.html"

    def tabs(self, changelist: ChangeList) -> Iterator[Tab]:
        """All, and every state."""
        for choice in self.choices(changelist):
            yield Tab(choice["display"], choice["query_string"], choice["selected"])


class TypedFilter(TermFilter):
    """A value that is typed, as in the search."""

    template = "admin/jobqueue/typed_filter.html"
    example: ClassVar[str] = ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """None: it is typed."""
        return []

    def has_output(self) -> bool:
        """Always, since anything can be typed."""
        return True

    def terms(self, table: Table) -> Sequence[Term]:
        """The typed text as terms. Raises SearchError if it is not valid."""
        value = self.value()
        typed = value.strip() if value else ""
        return parse(self.text(typed), table, timezones.now()).terms if typed else ()

    def text(self, typed: str) -> str:
        """The term of a search that says the same."""
        return f"{self.selects}:{quoted(typed)}"


class StatusFilter(TabFilter):
    """Archived jobs by their status."""

    title = _("status")
    parameter_name: str = "status"
    selects = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Every status."""
        return list(ArchivedStatus.choices)


class StateFilter(TabFilter):
    """Queued jobs by their state as a person sees it."""

    title = _("state")
    parameter_name: str = "state"
    selects = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The views of queued and running."""
        return [
            ("ready", _("ready")),
            ("later", _("later")),
            ("retrying", _("retrying")),
            ("running", _("running")),
            ("cancelling", _("cancelling")),
            ("lapsed", _("lapsed")),
        ]


class OfJobType(ChoiceFilter):
    """A job type, from the rows of the job types. Of hundreds, a part of the name is
    enough to type."""

    title = _("job type")
    parameter_name: str = "job_type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Every job type that was ever declared."""
        names = catalogue.type_names(request)
        few = len(names) <= self.most_options
        return [(name, visible(name) if few else name) for name in names]

    def offer_few(self, request: HttpRequest) -> None:
        """Those that finished most jobs lately."""
        self.names_url = reverse("admin:jobqueue_jobtype_names")
        self.lookup_choices = _named(usual_job_types()[: self.most_links - 2])
        typed = self.value()
        if typed:
            names = types_like(typed, catalogue.type_names(request))
            if len(names) == 1:
                self.used_parameters[self.parameter_name] = names[0]


class JobTypeFilter(OfJobType, TermFilter):
    """Jobs of one type."""

    selects = "type"


class QueueFilter(TermFilter):
    """Jobs of one queue."""

    title = _("queue")
    parameter_name: str = "queue"
    selects = "queue"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The queues of the job types, and those that have a row."""
        return _named(catalogue.queue_names(request))


class QueuedQueueFilter(QueueFilter):
    """The same, with the queues that jobs wait in."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The queues in use, too."""
        return _named(catalogue.queue_names_in_use(request))


class PriorityFilter(TypedFilter):
    """Jobs of one priority, or of those above or below."""

    title = _("priority")
    parameter_name: str = "priority"
    selects = "priority"
    example = "5, >0, -10..10"

    def text(self, typed: str) -> str:
        """A number, or one with an operator; spaces do not count."""
        return f"{self.selects}:{''.join(typed.split())}"


class ErrorFilter(TypedFilter):
    """Jobs by the class of the exception that they failed with last."""

    title = _("error class")
    parameter_name: str = "error"
    selects = "error"
    example = "TimeoutError"


class WorkerFilter(TypedFilter):
    """Jobs that a worker runs, or ran."""

    title = _("worker")
    parameter_name: str = "worker"
    selects = "worker"
    example = "web-1:4100"


class ReplayedFilter(TermFilter):
    """Archived jobs that were replayed, or were not."""

    title = _("replayed")
    parameter_name: str = "replayed"
    selects = "replayed"
    folded = True

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Yes or no."""
        return [("yes", _("replayed")), ("no", _("not replayed"))]

    def meant(self, value: str) -> bool:
        """True if they were."""
        if value not in ("yes", "no"):
            raise SelectionError(value)
        return value == "yes"


class FailureGroupFilter(TermFilter):
    """Archived jobs of one failure group; shown only while it is in use."""

    title = _("failure group")
    parameter_name: str = "fingerprint"
    selects = "group"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """None: links lead here."""
        return []

    def meant(self, value: str) -> UUID:
        """The fingerprint."""
        try:
            return UUID(value)
        except ValueError as error:
            raise SelectionError(str(error)) from error


def _named(names: Iterable[str]) -> list[tuple[str, Any]]:
    """Names as choices."""
    return [(name, visible(name)) for name in sorted(names)]
