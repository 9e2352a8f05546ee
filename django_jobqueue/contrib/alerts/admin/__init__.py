"""Alerts: what fires and what is resolved, and what the channels answered."""

from django.contrib import admin

from django_jobqueue.admin.lazy_page import lazy_page
from django_jobqueue.contrib.alerts.models import Alert

admin.site.register(
    Alert, lazy_page("django_jobqueue.contrib.alerts.admin.alert_list.AlertAdmin")
)
