"""States: the only spelling of each."""

from __future__ import annotations

from django_jobqueue.domain import states


def test_states_and_deliveries_are_those_of_the_glossary() -> None:
    assert states.QueuedStatus.values == ["queued", "running"]
    archived = ["succeeded", "failed", "expired", "cancelled"]
    assert states.ArchivedStatus.values == archived
    assert states.Delivery.values == ["at_least_once", "at_most_once"]


def test_every_value_fits_its_column() -> None:
    names = (
        "QueuedStatus",
        "ArchivedStatus",
        "AttemptEnd",
        "WorkerState",
        "GroupState",
    )
    for name, length in (*((name, 10) for name in names), ("Delivery", 20)):
        choices = getattr(states, name)
        assert all(len(value) <= length for value in choices.values), choices


def test_a_label_says_what_its_value_says() -> None:
    for choices in (states.QueuedStatus, states.ArchivedStatus, states.AttemptEnd):
        for choice in choices:
            assert choice.label == choice.value.replace("_", " ")
