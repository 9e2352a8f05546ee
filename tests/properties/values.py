"""What the properties are tried on: values and exceptions."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

any_text = st.text(st.characters(exclude_categories=()), max_size=30)  # NUL, surrogates
numbers = (
    st.integers()
    | st.integers(-(10**400), 10**400)
    | st.floats()
    | st.sampled_from([1e16, 1e22, 1e23, 1e300, 5e-324, -0.0, 10**1000])
)
scalars = st.none() | st.booleans() | numbers | any_text
json_values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(any_text, inner, max_size=5)
    ),
    max_leaves=25,
)

not_json = st.sampled_from(
    [(1, 2), {3}, b"x", Decimal("1.5"), datetime.now(UTC), object(), {4: 5}, ((),)]
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars | not_json,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(any_text | st.integers() | st.none(), inner, max_size=4)
    ),
    max_leaves=15,
)


class Weird(Exception):
    """Prints as something else, or not at all."""

    def __init__(self, printed: object) -> None:
        super().__init__()
        self.printed = printed

    def __str__(self) -> str:
        if isinstance(self.printed, BaseException):
            raise self.printed
        return self.printed  # type: ignore[return-value]

    __repr__ = __str__


messages = any_text | st.builds(
    lambda text, n: text * n, any_text, st.integers(0, 3_000)
)
single = st.one_of(
    st.builds(ValueError, messages),
    st.builds(KeyError, messages),
    st.builds(ImportError, messages, name=any_text),
    st.builds(
        Weird,
        messages
        | st.sampled_from(
            [None, 5, ValueError("x"), SystemExit(), KeyboardInterrupt()]
        ),
    ),
    st.builds(SystemExit, st.none() | st.integers() | any_text),
    st.builds(
        UnicodeDecodeError,
        st.just("utf-8"),
        st.binary(max_size=5),
        st.integers(-9, 9),
        st.integers(-9, 9),
        any_text,
    ),
)
groups: st.SearchStrategy[BaseException] = st.recursive(
    single,
    lambda inner: st.builds(
        BaseExceptionGroup, any_text, st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)
