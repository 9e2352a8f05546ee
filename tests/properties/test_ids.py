"""Ids ascend, however they are made."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from django_jobqueue.domain.ids import new_id, new_ids


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=10))
def test_new_ids_are_greater_than_all_before(counts: list[int]) -> None:
    made: list[UUID] = []
    for count in counts:
        made.append(new_id())
        made += new_ids(count)
    assert all(one < two for one, two in zip(made, made[1:], strict=False))
    assert [str(id) for id in made] == sorted(str(id) for id in made)
