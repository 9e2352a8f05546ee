"""The app of alerts: label ``jobqueue_alerts``, so tables read
``jobqueue_alerts_alert``."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from django_jobqueue.rooms import Room, Tab


class AlertsConfig(Room):
    """Adds alerts, and the thread that sends them."""

    default = True
    name = "django_jobqueue.contrib.alerts"
    label = "jobqueue_alerts"
    verbose_name = _("Job queue: alerts")
    needs = ("django_jobqueue.contrib.leases",)
    tabs = (Tab("alert", pgettext_lazy("tab", "Alerts"), "n"),)
    subcommands = {"alerts": "django_jobqueue.contrib.alerts.alerts_command.Alerts"}
    checks = ("django_jobqueue.contrib.alerts.checks",)
    rights = {"Job viewer": ("view_alert",)}
    dropped_hourly = ("django_jobqueue.contrib.alerts.alert_rows.drop",)
    on_failure = ("django_jobqueue.contrib.alerts.alerted.ALERTED",)
    maintenance_threads = ("django_jobqueue.contrib.alerts.alerter.thread",)
    overview_lists = ("django_jobqueue.contrib.alerts.admin.firing_alerts.firing",)
