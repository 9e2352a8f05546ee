"""The settings that say whose turn it is."""

from __future__ import annotations

from typing import Any, Final

from django_jobqueue.conf.http_settings import HttpSettings
from django_jobqueue.conf.setting_types import Seconds, Setting

HEAVIEST: Final = 1_000


class Weights(Setting[dict[str, int]]):
    """A number for each queue."""

    described_as = (
        f"whole numbers from 1 to {HEAVIEST:,} by queue, such as {{'high': 5}} or as a "
        "flag high=5,default=3"
    )
    types = (dict,)

    def accepts(self, value: object) -> bool:
        return isinstance(value, dict) and all(
            isinstance(queue, str)
            and queue
            and type(weight) is int
            and 1 <= weight <= HEAVIEST
            for queue, weight in value.items()
        )

    def from_text(self, text: str) -> dict[str, Any]:
        """``a=5,b=1`` as a dict. Raises ValueError, also for a queue that is there
        twice."""
        pairs = [pair.rpartition("=") for pair in text.split(",") if pair]
        weights = {queue.strip(): int(weight) for queue, _, weight in pairs}
        if len(weights) < len(pairs):
            raise ValueError(text)
        return weights


class FairnessSettings(HttpSettings):
    """A further part of ``Conf``."""

    queue_weights = Weights(
        {},
        "How many jobs of each queue are claimed for one of a queue with weight 1, "
        "while both have jobs; before priorities. Other queues have 1; empty: queues "
        "do not count.",
    )
    ageing = Seconds[float | None](
        None,
        "Each time a job has waited this long, it counts as one priority more "
        "urgent; None: priorities are strict.",
        minimum=1,
        optional=True,
    )
