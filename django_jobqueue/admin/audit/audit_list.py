"""Operators' actions, in the admin, by commands and by code that names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.db.models.query import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.limits.limit_keys import sees_keys
from django_jobqueue.admin.lists.change_list import KeyedChangeList
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.lists.filters import ChoiceFilter
from django_jobqueue.admin.lists.positions import Key
from django_jobqueue.admin.lists.ranges import ColumnRangeFilter
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.linked_text import linked
from django_jobqueue.models import AuditEntry
from django_jobqueue.operations.limits import OVERRIDE_LIMIT
from django_jobqueue.text import numbers
from django_jobqueue.text.redaction import MASK

SCANNED: Final = 10_000  # newest entries whose acts and people are offered
MOST_SHOWN: Final = 3  # of what an act was about
LONGEST: Final = 60  # characters of a name


class VerbFilter(ChoiceFilter):
    """Acts of one sort."""

    title = _("act")
    parameter_name = "verb"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Those of the newest entries."""
        return _choices("verb")


class ByFilter(ChoiceFilter):
    """Acts of one person."""

    title = _("person")
    parameter_name = "by"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Those of the newest entries."""
        return _choices("by")


class AuditEntryAdmin(ActionAdmin):
    """Entries are only looked at."""

    key = Key(AuditEntry, ("at", "id"))
    ordering = ("-at", "-id")
    list_columns = ("id", "at", "by", "verb", "count", "about", "details")
    list_display = ("time", "who", "act", "named", "told")
    list_display_links = None
    list_filter = (VerbFilter, ByFilter, ("at", ColumnRangeFilter))
    search_fields = ("id",)  # shows the box; the search is our own
    search_help_text = _("The id of a job; or the name of a job type, a queue, a user.")

    class Media:
        css: ClassVar[dict[str, Any]] = {"all": ["django_jobqueue/lists.css"]}

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """A list that is paged by its key."""
        return KeyedChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By what they were about, whole, or by whom."""
        text = search_term.strip().replace("\x00", "")
        if not text:
            return queryset, False
        about = Q(about__contains=[text]) | Q(about__contains=[text.lower()])
        return queryset.filter(about | Q(by=text) | Q(verb=text)), False

    def annotate(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """The details that this user may see."""
        for row in rows:
            row.shown_details = _shown(request, row)
        return rows

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """The list says all of an entry."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return HttpResponseRedirect(self.list_url)

    @column(description=_("time"))
    def time(self, entry: AuditEntry) -> Any:
        """When it was done."""
        return display.lines(
            [display.exact_moment(entry.at), _quiet(display.ago(entry.at))]
        )

    @column(description=_("by"))
    def who(self, entry: AuditEntry) -> str:
        """The acting person."""
        return display.visible(entry.by)

    @column(description=_("act"))
    def act(self, entry: AuditEntry) -> Any:
        """The action, and how many rows it changed."""
        verb = display.visible(entry.verb)
        if entry.count == 1:
            return verb
        return format_html("{} <b>×&nbsp;{}</b>", verb, numbers.number(entry.count))

    @column(description=_("about"))
    def named(self, entry: AuditEntry) -> Any:
        """The objects of the action, as links."""
        about = entry.about if isinstance(entry.about, list) else []
        links = [_link(str(name)) for name in about[:MOST_SHOWN]]
        if len(about) > MOST_SHOWN:
            links.append(_quiet(f"+{numbers.number(len(about) - MOST_SHOWN)}"))
        return display.lines(links) if links else display.NOTHING

    @column(description=_("details"))
    def told(self, entry: Any) -> Any:
        """Reasons, values before and after, and the like."""
        lines = [
            format_html(
                '<span class="jq-quiet">{}:</span> {}',
                display.visible(name.replace("_", " ")),
                linked(display.shown_text(_text(value)), display.CELL),
            )
            for name, value in entry.shown_details.items()
        ]
        return display.lines(lines) if lines else display.NOTHING


def _shown(request: HttpRequest, entry: AuditEntry) -> dict[str, Any]:
    """The details; without the key of a limit, unless the user sees its keys."""
    details = entry.details if isinstance(entry.details, dict) else {}
    if entry.verb != OVERRIDE_LIMIT or "key" not in details:
        return details
    about = entry.about if isinstance(entry.about, list) else []
    is_shown = all(sees_keys(request, str(limit)) for limit in about)
    return details if is_shown else {**details, "key": MASK}


def _choices(name: str) -> list[tuple[str, Any]]:
    newest = AuditEntry.objects.order_by("-at", "-id").values(name)[:SCANNED]
    rows: Sequence[str] = sorted({row[name] for row in newest})
    return [(text, display.visible(text)) for text in rows]


def _link(name: str) -> SafeString | str:
    """A name that leads to what it names, wherever that is now."""
    text = display.visible(name if len(name) <= LONGEST else f"{name[:LONGEST]}…")
    if name.isdigit():  # a worker, which is gone by then
        return text
    address = reverse("admin:jobqueue_jump")
    return format_html('<a href="{}?{}">{}</a>', address, urlencode({"to": name}), text)


def _quiet(text: str) -> SafeString:
    return format_html('<span class="jq-quiet">{}</span>', text)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {item}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
