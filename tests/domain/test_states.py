"""States: the only spelling of each."""

from __future__ import annotations

import pytest
from django.db.models import TextChoices

from django_jobqueue.domain import states


def test_the_states_of_jobs_are_those_of_the_glossary() -> None:
    assert states.QueuedStatus.values == ["queued", "running"]
    assert states.ArchivedStatus.values == [
        "succeeded",
        "failed",
        "expired",
        "cancelled",
    ]


def test_no_state_is_both_queued_and_archived() -> None:
    assert not set(states.QueuedStatus.values) & set(states.ArchivedStatus.values)


def test_deliveries_are_those_of_the_glossary() -> None:
    assert states.Delivery.values == ["at_least_once", "at_most_once"]


@pytest.mark.parametrize(
    ("choices", "length"),
    [
        (states.QueuedStatus, 10),
        (states.ArchivedStatus, 10),
        (states.Delivery, 20),
        (states.AttemptEnd, 10),
        (states.WorkerState, 10),
        (states.GroupState, 10),
    ],
)
def test_every_value_fits_its_column(choices: type[TextChoices], length: int) -> None:
    assert all(len(value) <= length for value in choices.values)


def test_a_label_says_what_its_value_says() -> None:
    for choices in (states.QueuedStatus, states.ArchivedStatus, states.AttemptEnd):
        for choice in choices:
            assert choice.label == choice.value.replace("_", " ")
