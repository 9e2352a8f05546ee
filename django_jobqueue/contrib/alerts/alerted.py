"""Part of the statements that record failures: makes an alert of each failure group
that is new or back."""

from __future__ import annotations

from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.contrib.alerts import signals
from django_jobqueue.store.on_failure import OnFailure


def alerts_are_on() -> bool:
    """True if anybody is to be alerted: a channel, or a receiver of a signal."""
    receivers = signals.alert_fired.receivers or signals.alert_resolved.receivers
    return bool(conf.alerts or receivers)


# Of all workers that meet a new failure, one inserts its group, and of those that meet
# a resolved one, one reopens it: so there is one alert, which exists if, and only if,
# the failure is recorded.
ALERTED: Final = OnFailure(
    """alerted AS (
  INSERT INTO jobqueue_alerts_alert (condition, subject, state, pending)
  SELECT condition, fingerprint::text, 'reported', 'fired'
    FROM (SELECT 'failure_group' AS condition, fingerprint FROM failure_group
          UNION ALL
          SELECT 'regression', fingerprint FROM regressed) AS occurred
   WHERE %(alerts)s::boolean
)""",
    lambda: {"alerts": alerts_are_on()},
)
