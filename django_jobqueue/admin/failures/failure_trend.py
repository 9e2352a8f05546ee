"""How often failure groups failed, hour by hour and day by day, from the roll-up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_jobqueue.admin.failures.failure_order import (
    DAY,
    HOUR,
    share_of_last_hour,
    start_of_hour,
)
from django_jobqueue.admin.parts import charts
from django_jobqueue.admin.parts.charts import Chart, Spark
from django_jobqueue.models import FailureRollup
from django_jobqueue.text import numbers, timezones

LONGEST: Final = 30 * DAY

# The span of a chart, and of each of its bars.
WINDOWS: Final = (
    (gettext_lazy("24 hours"), DAY, HOUR),
    (gettext_lazy("7 days"), 7 * DAY, 6 * HOUR),
    (gettext_lazy("30 days"), LONGEST, DAY),
)

COUNTED: Final = ("bucket", "failed", "retried")
Counts = tuple[int, int]  # how often the job was over with it, and retried
Hours = dict[datetime, Counts]


class Trend(NamedTuple):
    """A chart, and its values other than zero as a table."""

    label: Any
    chart: Chart
    rows: Sequence[tuple[str, str, str]]


class Lately(NamedTuple):
    """How often a group failed in the last 24 hours."""

    day: int
    hour: int  # as far as the hours of the roll-up tell
    spark: Spark  # on one scale with those of the other groups


def lately(fingerprints: Sequence[UUID]) -> dict[UUID, Lately]:
    """The last 24 hours of each of these groups."""
    now = timezones.now()
    by_group: dict[UUID, Hours] = {fingerprint: {} for fingerprint in fingerprints}
    rows = _rollups(now - DAY).filter(fingerprint__in=fingerprints)
    for fingerprint, *counts in rows.values_list("fingerprint", *COUNTED):
        _add(by_group[fingerprint], *counts)
    columns = {
        fingerprint: _columns(hours, now, DAY, HOUR)
        for fingerprint, hours in by_group.items()
    }
    most = max((sum(counts) for each in columns.values() for _at, counts in each))
    return {
        fingerprint: Lately(
            day=sum(sum(counts) for _at, counts in each),
            hour=_of_hour([sum(counts) for _at, counts in each], now),
            spark=_spark(each, most),
        )
        for fingerprint, each in columns.items()
    }


def _of_hour(hours: Sequence[int], now: datetime) -> int:
    """The sixty minutes before now, from the last two of these hours."""
    return round(hours[-1] + hours[-2] * share_of_last_hour(now))


def trends(fingerprint: UUID) -> list[Trend]:
    """A day, a week and a month of a group."""
    now = timezones.now()
    rows = _rollups(now - LONGEST - DAY).filter(fingerprint=fingerprint)
    hours: Hours = {}
    for counts in rows.values_list(*COUNTED):
        _add(hours, *counts)
    return [
        _trend(label, _columns(hours, now, span, step)) for label, span, step in WINDOWS
    ]


def _add(hours: Hours, bucket: datetime, failed: int, retried: int) -> None:
    """Add up job types and releases."""
    before = hours.get(bucket, (0, 0))
    hours[bucket] = (before[0] + failed, before[1] + retried)


def _rollups(since: datetime) -> Any:
    return FailureRollup.objects.filter(bucket__gt=since)


def _columns(
    hours: Hours, now: datetime, span: timedelta, step: timedelta
) -> list[tuple[datetime, Counts]]:
    """Failed and retried in each step; the last one ends with the hour that is now."""
    end = start_of_hour(now) + HOUR
    number = span // step
    sums = [[0, 0] for _place in range(number)]
    for bucket, counts in hours.items():
        place = number - 1 - (end - HOUR - bucket) // step
        if 0 <= place < number:
            sums[place][0] += counts[0]
            sums[place][1] += counts[1]
    return [
        (end - (number - place) * step, (failed, retried))
        for place, (failed, retried) in enumerate(sums)
    ]


def _spark(columns: Iterable[tuple[datetime, Counts]], most: int) -> Spark:
    counts = [counts for start, counts in columns]
    failed, retried = (sum(each) for each in zip(*counts, strict=True))
    summary = _("Last 24 hours: %(failed)s failed, %(retried)s retried.") % {
        "failed": numbers.number(failed),
        "retried": numbers.number(retried),
    }
    return charts.spark([(sum(pair), pair[0]) for pair in counts], summary, most)


def _trend(label: Any, columns: Sequence[tuple[datetime, Counts]]) -> Trend:
    most = charts.top(max(sum(counts) for start, counts in columns))
    titled = [(_start(at), counts) for at, counts in columns]
    failed = numbers.number(sum(counts[0] for start, counts in columns))
    retried = numbers.number(sum(counts[1] for start, counts in columns))
    summary = _("%(window)s: %(failed)s failed, %(retried)s retried.")
    return Trend(
        label,
        Chart(
            width=charts.width_of(len(columns)),
            summary=summary % {"window": label, "failed": failed, "retried": retried},
            y_labels=[numbers.number(most), numbers.number(most // 2), "0"],
            x_labels=[titled[0][0], titled[len(titled) // 2][0], titled[-1][0]],
            bars=charts.bars([_bar(*column) for column in titled], most),
        ),
        [
            (start, numbers.number(counts[0]), numbers.number(counts[1]))
            for start, counts in reversed(titled)
            if any(counts)
        ],
    )


def _bar(start: str, counts: Counts) -> tuple[str, list[tuple[str, int]]]:
    title = _("%(start)s: %(failed)s failed, %(retried)s retried") % {
        "start": start,
        "failed": numbers.number(counts[0]),
        "retried": numbers.number(counts[1]),
    }
    return title, [("failed", counts[0]), ("retried", counts[1])]


def _start(at: datetime) -> str:
    return date_format(timezones.local(at), "m-d H:i", use_l10n=False)
