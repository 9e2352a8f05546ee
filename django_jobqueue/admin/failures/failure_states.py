"""The states of failure groups as people see them: what was decided, and what time
and new failures made of it."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import Count
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.parts import display
from django_jobqueue.domain.states import GroupState
from django_jobqueue.models import FailureGroup
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


def pill(group: FailureGroup, *, with_assignee: bool = False) -> Any:
    """The state of a group, until when or in which release, and perhaps whose it is."""
    state = state_now(group)
    match state:
        case "regressed":
            shown = display.pill(state, gettext("regressed"))
        case "open" if group.state == GroupState.IGNORED:
            shown = display.pill(state, gettext("open: its time to be ignored is over"))
        case _:
            known = state in GroupState.values
            shown = display.pill(
                state if known else "unknown",
                GroupState(state).label if known else display.visible(state),
            )
    whose = [display.visible(group.assignee)] if with_assignee else []
    return display.lines([shown, *_notes(group, state), *filter(None, whose)])


def quiet(text: object) -> SafeString:
    """Something less important."""
    return format_html('<span class="jq-quiet">{}</span>', text)


def counts() -> dict[str, int]:
    """How many groups are in each state, among the newest ones."""
    some = FailureGroup.objects.order_by("-last_seen", "-fingerprint")
    sums = {name: Count("pk", filter=condition) for name, condition in STATES.items()}
    found: dict[str, int] = some[: MOST_COUNTED + 1].aggregate(all=Count("pk"), **sums)
    return found


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
