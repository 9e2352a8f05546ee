"""The windows of figures: the last hour, day, week or month."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from django.utils.translation import gettext_lazy as _

EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)  # where spans of any length begin


class Window(NamedTuple):
    """A length of time up to now, in spans that charts show."""

    name: str  # as addresses have it
    label: Any
    length: timedelta
    step: timedelta
    trend_step: timedelta
    per: Any  # what a span is called on an axis

    def start(self, now: datetime) -> datetime:
        """The start of its first span; the last one goes on."""
        return self.span_of(now) + self.step - self.length

    def span_of(self, moment: datetime) -> datetime:
        """The start of the span that this moment is in."""
        return moment - (moment - EPOCH) % self.step

    @property
    def fresh(self) -> float:
        """Seconds that figures of it are shown again before they are read again."""
        return max(3.0, self.length.total_seconds() / 1_440)


HOUR: Final = Window(
    "1h",
    _("last hour"),
    timedelta(hours=1),
    timedelta(minutes=1),
    timedelta(minutes=3),
    _("per minute"),
)
DAY: Final = Window(
    "24h",
    _("last 24 hours"),
    timedelta(days=1),
    timedelta(minutes=30),
    timedelta(hours=1),
    _("per half hour"),
)
WEEK: Final = Window(
    "7d",
    _("last 7 days"),
    timedelta(days=7),
    timedelta(hours=3),
    timedelta(hours=6),
    _("per three hours"),
)
MONTH: Final = Window(
    "30d",
    _("last 30 days"),
    timedelta(days=30),
    timedelta(days=1),
    timedelta(days=1),
    _("per day"),
)
WINDOWS: Final = {window.name: window for window in (HOUR, DAY, WEEK, MONTH)}
