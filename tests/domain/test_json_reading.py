"""JSON of rows is read without an error, whatever PostgreSQL keeps."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue.text.json_reading import (
    DEEPEST,
    UNREADABLE,
    read_json,
    repeated_key,
)

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.dear
@given(ANY.filter(lambda value: "Infinity" not in json.dumps(value)))
def test_what_python_reads_is_read_as_ever(value: object) -> None:
    text = json.dumps(value)
    assert read_json(text) == read_json(text.encode()) == value


def test_equal_keys_are_found_among_very_many() -> None:
    pairs = [(str(n), 0) for n in range(100_000)]
    assert repeated_key(pairs) is None
    began = time.process_time()
    assert repeated_key([*pairs, ("99999", 1), ("7", 1)]) == "7"
    assert time.process_time() - began < 20, "it was two minutes"


@pytest.mark.parametrize("digits", ["1" * 5_000, "-" + "9" * 100_000, "1" * 400 + ".5"])
def test_a_number_that_python_does_not_read_is_its_digits(digits: str) -> None:
    value = read_json(f'{{"a": [{digits}], "b": 2}}')
    assert value == {"a": [digits], "b": 2}
    assert json.loads(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("levels", "is_read"),
    [(DEEPEST, True), (DEEPEST + 1, False), (1_000, False), (100_000, False)],
)
def test_a_value_that_is_nested_too_deeply_is_not_read(
    levels: int, is_read: bool
) -> None:
    for begin, end in (("[", "]"), ('{"a":', "}")):
        text = begin * levels + "1" + end * levels
        assert (read_json(text) == UNREADABLE) is not is_read


def test_brackets_in_texts_and_beside_each_other_are_no_depth() -> None:
    for value in (['[{"' * 1_000, '\\"['], [[]] * 1_000, [{"a": {}}] * 1_000):
        assert read_json(json.dumps(value)) == value
