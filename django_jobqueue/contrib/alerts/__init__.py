"""Alerts: what they consist of, the channels that take them, and the loop that sends
them."""

from typing import TYPE_CHECKING

from django_jobqueue.text.lazy_names import lazily

if TYPE_CHECKING:
    from django_jobqueue.contrib.alerts.notification import Alert, Notification

__all__ = ["Alert", "Notification"]

__getattr__, __dir__ = lazily(
    globals(), dict.fromkeys(__all__, f"{__name__}.notification")
)
