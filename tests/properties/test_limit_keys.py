"""Keys of limits: of other values they are others, and no longer than the column."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from django_jobqueue.domain.per_key import LONGEST_KEY, PerKey, check_key
from django_jobqueue.exceptions import InvalidArguments

PARTS = st.text(alphabet="a,\\", max_size=3)
PAIRS = st.tuples(PARTS, PARTS)


def key_of(values: tuple[str, ...], *, name: str = "x") -> str:
    """The key of arguments p0, p1, …, without the limit."""
    names = [f"p{place}" for place in range(len(values))]
    rule = json.dumps({"name": name, "by": names, "defaults": {}})
    data = json.dumps(dict(zip(names, values, strict=True)))
    with connection.cursor() as cursor:
        cursor.execute("SELECT jobqueue_limit_key(%s::jsonb, %s::jsonb)", (rule, data))
        (whole,) = cursor.fetchone()
    limit, _, key = whole.partition(" ")
    assert limit == name
    return str(key)


@pytest.mark.django_db
@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(PAIRS, PAIRS)
def test_two_pairs_of_values_have_one_key_only_if_they_are_equal(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    assert (key_of(one) == key_of(other)) is (one == other)


@pytest.mark.django_db
def test_commas_of_values_are_not_those_between_them() -> None:
    assert key_of(("a,b", "c")) != key_of(("a", "b,c"))
    assert key_of(("7", "eu")) == "7,eu"
    assert key_of(("a,b",)) == "a,b"  # of one parameter as it is


@pytest.mark.django_db
def test_a_key_that_an_enqueue_takes_is_whole() -> None:
    per_key = PerKey(("p0", "p1"))
    most = (LONGEST_KEY - 1) // 2  # each comma of a value takes two characters
    check_key(per_key, {"p0": "," * most, "p1": ""})
    assert len(key_of(("," * most, ""))) <= LONGEST_KEY
    with pytest.raises(InvalidArguments, match="at most 150 characters"):
        check_key(per_key, {"p0": "," * (most + 1), "p1": ""})
