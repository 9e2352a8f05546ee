"""Whatever is raised is kept within its bounds, and no secret with it."""

from __future__ import annotations

import json
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue.conf import conf
from django_jobqueue.domain.failures import MESSAGE_LENGTH, MOST_FRAMES, Failure
from django_jobqueue.text.redaction import MASK, SHORTEST_SECRET, Secrets, secrets_in
from tests.properties import values


def rise(error: BaseException, depth: int) -> None:
    if depth:
        rise(error, depth - 1)
    raise error


def chained(errors: list[BaseException], depth: int, circle: bool) -> BaseException:
    """The last of these, raised from the one before, and so on."""
    before: BaseException | None = None
    for error in errors:
        try:
            rise(error, depth)
        except BaseException as caught:
            if caught is not before:
                caught.__cause__ = before
            before = caught
    if circle:
        errors[0].__cause__ = errors[-1]
    return errors[-1]


def check_bounds(failure: Failure) -> None:
    """What the columns, the settings and the design say about sizes."""
    mark = failure.fingerprint
    assert 0 < len(failure.error_class) <= 200
    assert len(failure.message.encode()) <= MESSAGE_LENGTH
    assert len(failure.traceback.encode()) <= conf.max_traceback_bytes
    assert len(failure.frames) <= MOST_FRAMES
    assert len(mark.error_class) <= 200
    assert len(mark.frame) <= 300
    assert len(mark.template.encode()) <= MESSAGE_LENGTH
    frames = json.dumps(failure.frames, ensure_ascii=False)
    texts = (failure.error_class, failure.message, failure.traceback, frames)
    for text in (*texts, mark.error_class, mark.frame, mark.template):
        assert "\x00" not in text
        text.encode()


@pytest.mark.dear
@given(
    st.lists(values.groups, min_size=1, max_size=3), st.integers(0, 60), st.booleans()
)
def test_whatever_is_raised_is_kept_within_bounds(
    errors: list[BaseException], depth: int, circle: bool
) -> None:
    failure = Failure.of(chained(errors, depth, circle), job_type="shop.charge")
    check_bounds(failure)


@given(
    st.dictionaries(values.any_text, values.scalars, max_size=6),
    st.sampled_from(["token", "TOKEN"]),
)
def test_every_value_under_a_sensitive_key_is_a_secret(
    data: dict[str, object], key: str
) -> None:
    texts = secrets_in({"inner": [{key: data}]}, ["Token"])
    assert all(len(text) >= SHORTEST_SECRET for text in texts)
    strings = [value for value in data.values() if isinstance(value, str)]
    assert {text for text in strings if len(text) >= SHORTEST_SECRET} <= texts


few = st.text("ab'", min_size=1, max_size=4)


@given(st.sets(few, max_size=5), st.text("ab'", max_size=14))
def test_each_character_of_a_secret_is_masked_and_no_other(
    texts: set[str], text: str
) -> None:
    spellings = {*texts, *(repr(one)[1:-1] for one in texts)}
    inside = [
        any(
            text.startswith(one, start)
            for one in spellings
            for start in range(max(0, at - len(one) + 1), at + 1)
        )
        for at in range(len(text))
    ]
    parts = groupby(range(len(text)), inside.__getitem__)
    assert Secrets(texts).mask(text) == "".join(
        MASK if hidden else "".join(text[at] for at in places)
        for hidden, places in parts
    )
