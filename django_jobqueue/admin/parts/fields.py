"""Form fields that several forms share: a priority, a queue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.policy import PRIORITIES


class PriorityField(forms.IntegerField):
    """A priority that jobs can have; it may be left empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            label=_("Priority"),
            required=False,
            min_value=PRIORITIES[0],
            max_value=PRIORITIES[-1],
            **options,
        )


class QueueField(forms.ChoiceField):
    """One of the queues in use; it may be left empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(label=_("Queue"), required=False, **options)

    def offer(self, names: Iterable[str], empty: Any) -> None:
        """Fill the choice; ``empty`` is what it means to choose none."""
        self.choices = [("", empty), *((name, name) for name in names)]
