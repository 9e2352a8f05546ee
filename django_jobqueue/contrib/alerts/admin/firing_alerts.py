"""The alerts that fire, on the overview."""

from __future__ import annotations

from typing import Final, NamedTuple

from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.overview.overview_page import OverviewLine, OverviewList
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.tabs import address_of
from django_jobqueue.conf import conf
from django_jobqueue.contrib.alerts.admin.alert_links import link_of
from django_jobqueue.contrib.alerts.models import Alert
from django_jobqueue.contrib.alerts.states import AlertState
from django_jobqueue.stats.cached import CachedValue
from django_jobqueue.stats.overview import FRESH, Now

MOST_ALERTS: Final = 20


class Firing(NamedTuple):
    """Those that fired at a moment, the newest first."""

    now: Now
    alerts: list[Alert]


_firing: CachedValue[Firing] = CachedValue()


def firing(request: HttpRequest, now: Now) -> OverviewList | None:
    """Those that fire, for users who may see alerts."""
    address = address_of(request, "alert", Alert._meta.app_label)
    if not may_view(request, Alert) or not address:
        return None
    held = _firing.get(
        conf.database, FRESH, lambda: _read(now), fits=lambda held: held.now is now
    )
    lines = [
        OverviewLine(
            text=_reason(alert),
            url=link_of(request, alert.condition, alert.subject),
            since=display.ago(alert.fired_at),
        )
        for alert in held.alerts
    ]
    url = f"{address}?state={AlertState.FIRING}"
    return OverviewList(_("Firing alerts"), url, lines) if lines else None


def _read(now: Now) -> Firing:
    rows = Alert.objects.using(conf.database).filter(state=AlertState.FIRING)
    return Firing(now, list(rows.order_by("-fired_at", "-id")[:MOST_ALERTS]))


def _reason(alert: Alert) -> str:
    label = str(alert.get_condition_display())
    if not alert.subject:
        return label
    return f"{label}: {display.shown_text(alert.subject, display.CELL)}"
