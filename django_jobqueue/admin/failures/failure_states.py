"""States of failure groups: filters, counts and pills."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.admin.views.main import SEARCH_VAR
from django.db.models import Count, Q
from django.db.models.query import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.lists.filters import ChoiceFilter, OfJobType
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.display import visible
from django_jobqueue.domain.states import ArchivedStatus, GroupState
from django_jobqueue.models import ArchivedJob, FailureGroup
from django_jobqueue.stats.group_states import STATES as STATES
from django_jobqueue.stats.group_states import state_now as state_now

ALL: Final = "all"
MOST_COUNTED: Final = 10_000  # groups

LABELS: Final = {
    "open": pgettext_lazy("failure groups", "Open"),
    "regressed": pgettext_lazy("failure groups", "Regressed"),
    "resolved": pgettext_lazy("failure groups", "Resolved"),
    "ignored": pgettext_lazy("failure groups", "Ignored"),
    ALL: pgettext_lazy("failure groups", "All"),
}


def default_state(request: HttpRequest) -> str:
    """The state that the list is narrowed to where its address has none."""
    return ALL if request.GET.get(SEARCH_VAR) else "open"


def pill(group: FailureGroup, *, with_assignee: bool = False) -> Any:
    """The state of a group, until when or in which release, and perhaps whose it is."""
    state = state_now(group)
    match state:
        case "regressed":
            shown = display.pill(state, gettext("regressed"))
        case "open" if group.state == GroupState.IGNORED:
            shown = display.pill(state, gettext("open: no longer ignored"))
        case _:
            known = state in GroupState.values
            shown = display.pill(
                state if known else "unknown",
                GroupState(state).label if known else display.visible(state),
            )
    whose = [display.visible(group.assignee)] if with_assignee else []
    return display.lines([shown, *_notes(group, state), *filter(None, whose)])


def is_answered(group: FailureGroup) -> bool:
    """True if somebody decided, and it did not come back."""
    return state_now(group) in (GroupState.RESOLVED, GroupState.IGNORED)


def quiet(text: object) -> SafeString:
    """Something less important."""
    return format_html('<span class="jq-quiet">{}</span>', text)


def counts() -> dict[str, int]:
    """How many groups are in each state, among the newest ones."""
    some = FailureGroup.objects.order_by("-last_seen", "-fingerprint")
    sums = {name: Count("pk", filter=condition) for name, condition in STATES.items()}
    by_state: dict[str, int] = some[: MOST_COUNTED + 1].aggregate(
        all=Count("pk"), **sums
    )
    return by_state


def _notes(group: FailureGroup, state: str) -> list[Any]:
    if state == "ignored" and group.ignored_until is not None:
        text = _("until %(moment)s")
        shown = display.exact(group.ignored_until)
        return [quiet(text % {"moment": shown})]
    if state == "resolved" and group.resolved_in:
        text = _("in %(release)s")
        shown = display.visible(group.resolved_in)
        return [quiet(text % {"release": shown})]
    if state == "regressed" and group.regressed_at is not None:
        return [display.moment(group.regressed_at)]
    return []


MOST_JOBS: Final = 5_000  # of a type, that are looked at for their groups
MOST_GROUPS: Final = 1_000  # assigned ones, that are looked at for names
NOBODY: Final = "-"


class GroupStateFilter(ChoiceFilter):
    """By the state at this moment; the tabs above the list are its choices, too."""

    title = _("state")
    template = "admin/jobqueue/no_filter.html"
    parameter_name: str = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Every state."""
        return list(LABELS.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Those that somebody has to decide about, unless the address says otherwise;
        a search looks at all."""
        value = self.value() or default_state(request)
        return queryset.none() if "\x00" in value else self.narrowed(queryset, value)

    def narrowed(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """By a condition; nothing for a state that there is not."""
        if value == ALL:
            return queryset
        condition = STATES.get(value)
        return queryset.none() if condition is None else queryset.filter(condition)


class AssigneeFilter(ChoiceFilter):
    """By who looks after them."""

    title = _("assignee")
    parameter_name: str = "assignee"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Oneself, nobody, and the names in use."""
        me = request.user.get_username()
        assigned = FailureGroup.objects.exclude(assignee="").order_by("-last_seen")
        names = set(assigned.values_list("assignee", flat=True)[:MOST_GROUPS]) - {me}
        others = [(name, visible(name)) for name in sorted(names)]
        return [(me, _("me")), (NOBODY, _("nobody")), *others]

    def narrowed(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """By the name; a dash is nobody."""
        return queryset.filter(assignee="" if value == NOBODY else value)


class GroupJobTypeFilter(OfJobType):
    """By the job types whose jobs failed so: of each, its newest failed jobs tell."""

    def narrowed(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """By the fingerprints of its newest failed jobs; crashes name the type."""
        newest = (
            ArchivedJob.objects.filter(job_type_id=value, status=ArchivedStatus.FAILED)
            .exclude(status=ArchivedStatus.SUCCEEDED)  # names the index to take
            .order_by("-finished_at", "-id")
            .values("fingerprint")[:MOST_JOBS]
        )
        return queryset.filter(Q(fingerprint__in=newest) | Q(frame=value))
