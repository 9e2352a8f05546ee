"""The states of alerts, and their news."""

from __future__ import annotations

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class AlertState(TextChoices):
    """The state of an alert."""

    REPORTED = "reported", _("reported")  # an occurrence, which is never over
    FIRING = "firing", _("firing")
    RESOLVED = "resolved", _("resolved")


class AlertEvent(TextChoices):
    """The news about an alert."""

    FIRED = "fired", _("fired")
    REPEATED = "repeated", _("still firing")
    RESOLVED = "resolved", _("resolved")
