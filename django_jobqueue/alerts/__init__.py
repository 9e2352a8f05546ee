"""Alerts: what they consist of, the channels that take them, and the loop that sends
them."""

from django_jobqueue.alerts.notification import Alert, Notification

__all__ = ["Alert", "Notification"]
