"""Where personal data can be in the tables of schedules."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.states import Holds
from django_jobqueue.store.personal_columns import Column, Source

# A schedule must not make jobs of data that were erased.
_PAUSED: Final = {
    "paused": "true",
    "paused_at": "clock_timestamp()",
    "paused_reason": "'personal data erased'",
}
# What its jobs get.
GIVEN: Final = ("data", "data_override", "options")

SOURCES: Final = (
    Source(
        name="schedules",
        label=_("Schedules"),
        page="jobqueue_schedules.schedule",
        effect=_("Schedules are paused if their data contains the value."),
        table="jobqueue_schedules_schedule",
        order={"name": "text"},
        columns=(
            *(Column(name, Holds.DATA) for name in GIVEN),
            Column("paused_by", Holds.TEXT),
            Column("paused_reason", Holds.TEXT),
        ),
        also=dict.fromkeys(GIVEN, _PAUSED),
    ),
    Source(
        name="firings",
        label=_("Firings of schedules"),
        table="jobqueue_schedules_firing",
        order={"schedule": "text", "fires_at": "timestamptz"},
        columns=(Column("by", Holds.TEXT),),
    ),
)
