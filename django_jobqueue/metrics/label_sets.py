"""Limits the label sets of a metric: queues by pattern, and all by number."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final

from django_jobqueue.metrics.metric import Merge, Metric, Value, added, size_of

OTHER: Final = "(other)"
Values = dict[tuple[str, ...], Value]  # by the values of the labels

logger = logging.getLogger("django_jobqueue.metrics")


def merged(metric: Metric, samples: Iterable[tuple[tuple[str, ...], Value]]) -> Values:
    """One value for each label set."""
    values: Values = {}
    for labels, value in samples:
        held = values.get(labels)
        if held is None:
            values[labels] = value
        elif metric.merge is Merge.MAX:
            values[labels] = max(held, value)
        else:
            values[labels] = added(held, value)
    return values


def with_queues_folded(
    metric: Metric, values: Values, queues: Mapping[str, str]
) -> Values:
    """The values with each queue under the label that the first matching pattern of
    ``METRICS_QUEUES`` has for it."""
    if not queues or "queue" not in metric.label_names:
        return values
    place = metric.label_names.index("queue")

    def folded(labels: tuple[str, ...]) -> tuple[str, ...]:
        name = queue_label(labels[place], queues)
        return (*labels[:place], name, *labels[place + 1 :])

    return merged(metric, ((folded(key), value) for key, value in values.items()))


def queue_label(queue: str, queues: Mapping[str, str]) -> str:
    """The label of a queue: that of the first pattern that matches, else its name."""
    for pattern, label in queues.items():
        if fnmatchcase(queue, pattern):
            return label
    return queue


class LabelLimit:
    """Keeps the largest label sets of each metric, and adds the others up.

    A label set that was shown stays shown: a series that moved into ``(other)`` and
    back would look like a counter that begins again. One for each process, which may
    use it in several threads: at worst a series more is shown.
    """

    def __init__(self) -> None:
        self._shown: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        self._warned: set[str] = set()

    def limited(self, metric: Metric, values: Values, most: int) -> Values:
        """At most about so many label sets, ``(other)`` besides."""
        open_places = [n for n, label in enumerate(metric.labels) if not label.values]
        if not open_places:
            return values
        shown = self._shown[metric.name]
        groups = _groups(values, open_places)
        fresh = [names for names in groups if names not in shown]
        if fresh:
            sets = sum(len(groups.get(names, ())) or 1 for names in shown.copy())
            fresh.sort(key=lambda names: (-sum(map(size_of, groups[names])), names))
            for names in fresh:
                sets += len(groups[names])
                if sets > most:
                    self._warn(metric.name, most)
                    break
                shown.add(names)

        def folded(labels: tuple[str, ...]) -> tuple[str, ...]:
            if tuple(labels[n] for n in open_places) in shown:
                return labels
            return tuple(
                OTHER if n in open_places else value for n, value in enumerate(labels)
            )

        return merged(metric, ((folded(key), value) for key, value in values.items()))

    def _warn(self, name: str, most: int) -> None:
        if name not in self._warned:
            self._warned.add(name)
            logger.warning(
                "%s has more than %d label sets (METRICS_SERIES); the smallest are "
                "added up under %s. METRICS_QUEUES can fold queues by pattern",
                name,
                most,
                OTHER,
            )


def _groups(
    values: Values, open_places: list[int]
) -> dict[tuple[str, ...], list[Value]]:
    """The values by those labels that can have any value."""
    groups: dict[tuple[str, ...], list[Value]] = defaultdict(list)
    for labels, value in values.items():
        groups[tuple(labels[n] for n in open_places)].append(value)
    return groups
