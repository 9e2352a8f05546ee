"""States: the only spelling of each."""

from __future__ import annotations

from django.db.models import TextChoices

from django_jobqueue.domain import states


def test_states_and_deliveries_are_those_of_the_glossary() -> None:
    assert states.QueuedStatus.values == ["queued", "running"]
    archived = ["succeeded", "failed", "expired", "cancelled"]
    assert states.ArchivedStatus.values == archived
    assert states.Delivery.values == ["at_least_once", "at_most_once"]


def test_every_value_fits_its_column() -> None:
    lengths: dict[type[TextChoices], int] = {
        states.QueuedStatus: 10,
        states.ArchivedStatus: 10,
        states.Delivery: 20,
        states.AttemptEnd: 10,
        states.WorkerState: 10,
        states.GroupState: 10,
    }
    for choices, length in lengths.items():
        assert all(len(value) <= length for value in choices.values), choices


def test_a_label_says_what_its_value_says() -> None:
    for choices in (states.QueuedStatus, states.ArchivedStatus, states.AttemptEnd):
        for choice in choices:
            assert choice.label == choice.value.replace("_", " ")
