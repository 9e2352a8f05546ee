"""Alerts: what fires, what is resolved, and what each channel answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models.query import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.lists.change_list import KeyedChangeList
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.lists.filters import ChoiceFilter
from django_jobqueue.admin.lists.positions import Key
from django_jobqueue.admin.lists.ranges import ColumnRangeFilter
from django_jobqueue.admin.parts import display
from django_jobqueue.contrib.alerts import Alert as Announced
from django_jobqueue.contrib.alerts import alert_rows
from django_jobqueue.contrib.alerts.admin.alert_links import link_of
from django_jobqueue.contrib.alerts.models import Alert, AlertDelivery
from django_jobqueue.contrib.alerts.notification import alert_of
from django_jobqueue.contrib.alerts.states import AlertState
from django_jobqueue.domain.states import AlertCondition
from django_jobqueue.models import FailureGroup
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.text import numbers
from django_jobqueue.text.numbers import span

MOST_DELIVERIES: Final = 6  # in a cell
PILLS: Final = {
    AlertState.REPORTED: "stopped",
    AlertState.FIRING: "failed",
    AlertState.RESOLVED: "succeeded",
}


@dataclass(slots=True)
class RowContext:
    """The data of a row beside its own columns."""

    alert: Announced
    url: str
    shows_error: bool
    deliveries: list[AlertDelivery]  # the newest first


class AlertStateFilter(ChoiceFilter):
    """Alerts that fire, are resolved, or were reported once."""

    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """All states."""
        return list(AlertState.choices)


class AlertConditionFilter(ChoiceFilter):
    """Alerts for one reason."""

    title = gettext_lazy("condition")
    parameter_name = "condition"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """All conditions."""
        return list(AlertCondition.choices)


class AlertAdmin(ActionAdmin):
    """Alerts are only looked at: they resolve by themselves."""

    key = Key(Alert, ("fired_at", "id"))
    ordering = ("-fired_at", "-id")
    list_columns = (
        *("id", "fired_at", "state", "condition", "subject", "text"),
        *("last_seen", "resolved_at"),
    )
    list_display = ("fired", "state_pill", "reason", "content", "sent")
    list_display_links = None
    list_filter = (
        AlertStateFilter,
        AlertConditionFilter,
        ("fired_at", ColumnRangeFilter),
    )
    search_fields = ("subject",)
    search_help_text = gettext_lazy("A queue, a job type, or a failure's fingerprint.")

    class Media:
        css: ClassVar[dict[str, Any]] = {"all": ["django_jobqueue/lists.css"]}

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """A list that is paged by its key."""
        return KeyedChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By a part of what they are about."""
        text = search_term.strip().replace("\x00", "")
        if text:
            queryset = queryset.filter(subject__icontains=text)
        return queryset, False

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """The list says all of an alert."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return HttpResponseRedirect(self.list_url)

    def annotate(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """Add the sentences and deliveries, in two queries."""
        ids = [row.pk for row in rows]
        news = {one.id: one for one in alert_rows.alerts(DjangoDatabase(), ids)}
        by_alert: dict[Any, list[AlertDelivery]] = defaultdict(list)
        for one in AlertDelivery.objects.filter(alert_id__in=ids).order_by("-id"):
            by_alert[one.alert_id].append(one)
        shows_errors = may_view(request, FailureGroup)
        rows = [row for row in rows if row.pk in news]
        for row in rows:
            row.context = RowContext(
                alert_of(news[row.pk]),
                link_of(request, row.condition, row.subject),
                shows_errors,
                by_alert[row.pk],
            )
        return rows

    @column(description=gettext_lazy("fired"))
    def fired(self, row: Alert) -> Any:
        """When it fired."""
        return display.moment(row.fired_at)

    @column(description=gettext_lazy("state"))
    def state_pill(self, row: Alert) -> Any:
        """The state; how long it fired."""
        pill = display.pill(PILLS[AlertState(row.state)], row.get_state_display())
        return display.lines([pill, *map(_quiet, _duration(row))])

    @column(description=gettext_lazy("condition"))
    def reason(self, row: Alert) -> Any:
        """The condition, and what it is about."""
        label = row.get_condition_display()
        if row.state == AlertState.REPORTED or not row.subject:
            return label
        return display.lines([label, _quiet(display.breakable(row.subject))])

    @column(description=gettext_lazy("alert"))
    def content(self, row: Any) -> Any:
        """The sentence, which leads to what it is about."""
        context: RowContext = row.context
        text = display.shown_text(context.alert.text)
        if context.url:
            text = format_html('<a href="{}">{}</a>', context.url, text)
        error = context.alert.error if context.shows_error else ""
        return display.lines([text, *([display.shown_text(error)] if error else [])])

    @column(description=gettext_lazy("channels"))
    def sent(self, row: Any) -> Any:
        """The outcomes of its deliveries, the newest first."""
        deliveries: list[AlertDelivery] = row.context.deliveries
        lines: list[Any] = list(map(_answer, deliveries[:MOST_DELIVERIES]))
        if len(deliveries) > MOST_DELIVERIES:
            left = numbers.number(len(deliveries) - MOST_DELIVERIES)
            lines.append(_quiet(f"+{left}"))
        return display.lines(lines) if lines else display.NOTHING


def _duration(row: Alert) -> Iterator[str]:
    end = row.resolved_at or datetime.now(UTC)
    if row.state != AlertState.REPORTED:
        yield span(max(0.0, (end - row.fired_at).total_seconds()))
    # Nobody checks it any longer: alerts are off, or no host sends them.
    if row.state == AlertState.FIRING and row.last_seen:
        unseen = (datetime.now(UTC) - row.last_seen).total_seconds()
        if unseen > 300:
            yield _("last seen %(time)s ago") % {"time": span(unseen)}


def _answer(delivery: AlertDelivery) -> SafeString:
    """The event, the channel, and what it answered."""
    return format_html(
        "<bdi>{}</bdi>: {} – {}",
        display.shown_text(delivery.channel),
        delivery.get_event_display(),
        _outcome(delivery),
    )


def _outcome(delivery: AlertDelivery) -> Any:
    error = display.shown_text(delivery.error)
    if delivery.sent_at is not None:
        return format_html("{} {}", _("accepted"), display.ago(delivery.sent_at))
    if delivery.given_up_at is not None:
        return display.pill("failed", _("given up: %(error)s") % {"error": error})
    if delivery.error and delivery.next_attempt_at is not None:
        text = _("%(error)s; next attempt %(time)s")
        when = display.ago(delivery.next_attempt_at)
        return display.pill("retrying", text % {"error": error, "time": when})
    return _quiet(_("waits"))


def _quiet(text: object) -> SafeString:
    return format_html('<span class="jq-quiet">{}</span>', text)
