"""The signals of alerts, sent by a thread of the maintenance process that holds their
lease. The argument is ``alert``, an ``Alert`` of this package; the sender is its
condition."""

from django.dispatch import Signal

alert_fired = Signal()
alert_resolved = Signal()
