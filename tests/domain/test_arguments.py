"""Arguments: bound to the handler's signature, to JSON, and back as they were given."""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Callable
from datetime import date, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ImproperlyConfigured
from django.utils.safestring import mark_safe

from django_jobqueue import Context, InvalidArguments, InvalidResult
from django_jobqueue.domain.arguments import (
    Parameters,
    from_json,
    result_to_json,
    to_json,
)
from django_jobqueue.domain.json_values import MAX_DEPTH
from tests.support.tables import differing, refusal

PLENTY = 10_000_000
ASK = "pass a string, a number or a key, and let the handler look it up."


def send(order_id: int, *, copy_to: str = "", urgent: bool = False) -> None: ...


def charge(amount: int, currency: str = "EUR") -> None: ...


def anything(first: int, **rest: Any) -> None: ...


def look(context: Context, order_id: int = 0) -> None: ...


def look_around(context: Context, **rest: Any) -> None: ...


def parameters(function: Callable[..., Any], *, context: bool = False) -> Parameters:
    return Parameters.of(function, takes_context=context)


def bind(function: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
    return parameters(function).bind(args, kwargs)


def why_not(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """Why this call is refused, without the module of the function."""
    said = refusal(InvalidArguments, parameters(function).bind, args, kwargs)
    return said.removeprefix(f"{__name__}.")


def test_a_call_becomes_data_with_a_key_for_each_argument_but_no_default() -> None:
    assert bind(charge, 5) == bind(charge, amount=5) == {"amount": 5}
    assert bind(charge, 5, "CHF") == {"amount": 5, "currency": "CHF"}
    assert bind(charge, currency="CHF", amount=5) == {"amount": 5, "currency": "CHF"}
    assert bind(send, 7, urgent=True) == {"order_id": 7, "urgent": True}
    assert bind(anything, 1, colour="red") == {"first": 1, "colour": "red"}


def test_a_call_that_does_not_fit_is_refused_with_the_reason() -> None:
    meant = "send() has no parameter 'urgnet'. Did you mean 'urgent'?"
    many = "takes at most {} positional argument{}, not {}."
    refused: list[tuple[str, str]] = [
        (why_not(send, 7, urgnet=True), meant),
        (why_not(send, 7, zzz=1), "send() has no parameter 'zzz'."),
        (why_not(send, urgent=True), "send() is missing 'order_id'."),
        (why_not(anything, colour="red"), "anything() is missing 'first'."),
        (why_not(charge, 5, amount=6), "charge() got 'amount' twice."),
        (why_not(charge, 5, "CHF", currency="E"), "charge() got 'currency' twice."),
        (why_not(charge, 1, "EUR", 3), f"charge() {many.format(2, 's', 3)}"),
        (why_not(send, 1, "anna"), f"send() {many.format(1, '', 2)}"),
    ]
    assert differing(refused, str) == []


def test_the_context_is_no_argument_of_a_job() -> None:
    bound = parameters(look, context=True)
    assert bound.bind((7,), {}) == {"order_id": 7}
    assert refusal(InvalidArguments, bound.bind, (), {"context": 1}) == (
        f"{__name__}.look() is given its 'context' by the worker."
    )
    bound = parameters(look_around, context=True)
    assert bound.problem({"colour": "red"}) is None
    assert bound.problem({"colour": "red", "context": 1}) == (
        f"{__name__}.look_around() is given its 'context' by the worker."
    )


def test_a_handler_names_its_parameters_and_the_context() -> None:
    def declare(function: Any) -> Parameters:
        return parameters(function, context=True)

    must = "must be named 'context'"
    assert refusal(ImproperlyConfigured, declare, charge) == (
        f"@job on {__name__}.charge: with takes_context=True the first parameter "
        f"{must}."
    )
    assert must in refusal(ImproperlyConfigured, declare, lambda: None)
    for function in (
        lambda *numbers: None,
        lambda number, /: None,
        lambda first, *numbers, **rest: None,
    ):
        assert refusal(ImproperlyConfigured, parameters, function).endswith(
            ": a job's data is kept by name, so the handler cannot take *args or "
            "positional-only parameters."
        )


def test_data_fits_if_every_needed_key_is_there_and_no_unknown_one() -> None:
    def problem(data: Any) -> str:
        return parameters(charge).problem(data) or ""

    for data in (None, [], "text", 5):
        assert problem(data) == (
            f"The data for {__name__}.charge() must be an object with a key for each "
            f"parameter, not {type(data).__name__}."
        )
    write = "not list. Write {'amount': …, 'currency': …}."
    assert problem([5, "EUR"]).endswith(write)
    assert problem({"amount": 5}) == problem({"amount": 5, "currency": "CHF"}) == ""
    assert "is missing 'amount'" in problem({})
    assert problem({1: 1, "zzz": 2, "amount": 5}) == (
        f"{__name__}.charge() has no parameter 1. It has no parameter 'zzz'."
    )


FAITHFUL: list[Any] = [
    {"a": {"b": [1, [2, {"c": []}]]}, "d": None, "e": True},
    {"n": -(10**4_000), "x": 1e22, "y": 1e16, "s": 5e-324, "m": -0.0, "z": 0.1 + 0.2},
    {"t": "snowman ☃, emoji 🎉, RTL \u202e, U+2028 \u2028, DEL \x7f, ESC \x1b"},
    {"t": "\\u0000 as six characters", "u": 'line\nline\ttab "quoted" \\', "": 1},
    {"wide": [[] for _ in range(MAX_DEPTH * 3)]},
    *(["a", "list"], "a text", 5, None, {}),
]


def test_what_is_accepted_comes_back_as_it_was_given() -> None:
    rows = [(data, data) for data in FAITHFUL]
    texts = {"a": StrEnum("Colour", {"RED": "red"}).RED, "b": mark_safe("<b>")}
    rows.append((texts, {"a": "red", "b": "<b>"}))  # of other classes
    assert differing(rows, lambda data: from_json(to_json(data, limit=PLENTY))) == []
    for text in ("", "{", "[1,]", "[" * 200_000):
        with pytest.raises(ValueError, match=r"."):
            from_json(text)
    for data in (
        {},
        {"a": 1, "b": -(10**30), "c": True, "d": False, "e": None},
        {"": '"\\/\b\f\n\r\t\x1f\x7f', "ü\n": "日本😀\u2028"},
    ):
        plain = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        assert to_json(data, limit=1_000) == plain


def nested(levels: int) -> list[Any]:
    data: list[Any] = []
    for _ in range(levels - 1):
        data = [data]
    return data


def circle() -> list[Any]:
    data: list[Any] = []
    data.append([data])
    return data


def not_in_json(name: str) -> str:
    return f"is {name}, which JSON does not have; {ASK}"


REFUSED: list[tuple[Any, str]] = [
    ({"a": "x\x00y"}, "data['a'] has a NUL character, which PostgreSQL cannot store."),
    ({"a": {"x\x00y": 1}}, "a key of data['a'] has a NUL character, which PostgreSQL "),
    ({"a": [{"b": "\x00"}]}, "data['a'][0]['b'] has a NUL character"),
    ({"a": "\ud83d"}, "data['a'] has half of a surrogate pair, which is not text."),
    ({"\udc00": 1}, "a key of data has half of a surrogate pair, which is not text."),
    ({"a": math.nan}, "data['a'] is nan, which JSON does not have."),
    ({"a": [1, math.inf]}, "data['a'][1] is inf, which JSON does not have."),
    ({"a": -math.inf}, "data['a'] is -inf, which JSON does not have."),
    ({"a": 1e300}, "data['a'] is 1e+300, which would come back as another number."),
    ({"a": 1e23}, "data['a'] is 1e+23, which would come back as another number."),
    ({"a": [{"b": -1.7e308}]}, "data['a'][0]['b'] is -1.7e+308, which would come back"),
    ({"a": 10**5_000}, "data['a'] has more digits than Python reads back; pass a"),
    ({"a": datetime(2026, 11, 21)}, f"data['a'] {not_in_json('a datetime')}"),
    ({"a": date(2026, 11, 21)}, f"data['a'] {not_in_json('a date')}"),
    ({"a": decimal.Decimal("1.5")}, f"data['a'] {not_in_json('a Decimal')}"),
    ({"a": {1, 2}}, f"data['a'] {not_in_json('a set')}"),
    ({"a": b"bytes"}, f"data['a'] {not_in_json('a bytes')}"),
    ({"a": UUID(int=1)}, "data['a'] is a"),
    ({"a": [Group(name="staff")]}, f"data['a'][0] {not_in_json('a Group')}"),
    ({"a": object()}, f"data['a'] {not_in_json('an object')}"),
    ({"a": (1, 2)}, "data['a'] is a tuple, which JSON brings back as a list; pass a"),
    ({"a": {"b": ()}}, "data['a']['b'] is a tuple, which JSON brings back as a list"),
    *(
        ({"a": {key: "x"}}, f"data['a'] has the key {key}; JSON keys are strings.")
        for key in (1, 1.5, None, True, (1,))
    ),
    ({"a": {"1": "x", 1: "y"}}, "data['a'] has the key 1; JSON keys are strings."),
]


def refused(data: Any) -> str:
    return refusal(InvalidArguments, lambda: to_json(data, limit=PLENTY))


def test_what_would_not_come_back_is_refused_with_its_place() -> None:
    assert differing(REFUSED, refused, str.startswith) == []
    allowed = nested(MAX_DEPTH + 1)
    assert from_json(to_json(allowed, limit=PLENTY)) == allowed
    for data in (nested(MAX_DEPTH + 2), nested(1_500), nested(100_000), circle()):
        said = refused(data)
        assert said.endswith(f"is nested deeper than {MAX_DEPTH} levels.")
        assert len(said) < 300


def test_the_limit_counts_bytes_is_allowed_itself_and_is_told() -> None:
    data = {"t": "ü" * 10}
    size = len('{"t":""}') + 20
    assert len(to_json(data, limit=size).encode()) == size
    assert refusal(InvalidArguments, lambda: to_json(data, limit=size - 1)) == (
        "data is 28 bytes of JSON; at most 27 are allowed. Store it elsewhere and pass "
        "a key, or raise JOBQUEUE['MAX_DATA_BYTES']."
    )
    said = refusal(
        InvalidArguments,
        lambda: to_json(["x" * 2_000], limit=1_000, what="tags", advice="Use fewer."),
    )
    assert said == "tags is 2,004 bytes of JSON; at most 1,000 are allowed. Use fewer."


def result(value: Any) -> str:
    return result_to_json(value, limit=PLENTY)


def test_a_result_is_kept_as_json_has_it_within_the_limit() -> None:
    kept = [
        (None, "null"),
        ({"a": [1, 2.5, "ü"]}, '{"a":[1,2.5,"ü"]}'),
        ((1, 2), "[1,2]"),
        ({1: "x"}, '{"1":"x"}'),
        (1e300, "1e+300"),
    ]
    assert differing(kept, result) == []
    for text in ("\\u0000", "\\\\u0000", "\\\\\\u0000"):  # escapes for a NUL, as text
        assert json.loads(result((text,))) == [text]
    assert json.loads(result_to_json("x" * 100_000, limit=65_536)) == {
        "not_kept": "result of 100,002 bytes; only 65,536 are kept"
    }


def test_a_result_that_json_does_not_have_is_refused_with_its_place() -> None:
    values = [object(), {1, 2}, math.nan, "\x00", {"a": ["\x00"]}, "\ud800", 10**5_000]
    for value in (*values, "\\\x00", "\x00\\", circle(), nested(200_000)):
        with pytest.raises(InvalidResult, match=r"^(a key of )?result") as caught:
            result({"rows": [0, value]})
        assert str(caught.value).startswith("result['rows'][1]")
        assert caught.value.__cause__ is None
        assert len(str(caught.value)) < 400


def test_a_refused_result_says_what_to_return() -> None:
    said = [
        (datetime(2026, 1, 1), "result is a datetime, which JSON does not have. Re"),
        ({"a": {"b": (1, {2})}}, "result['a']['b'][1] is a set, which JSON does not "),
        ((n for n in "ab"), "result is a generator, which JSON does not have. R"),
        ({(1, 2): 3}, "result has a key that is a tuple; JSON keys are strings."),
        ({"a\x00": 3}, "a key of result has a NUL character, which PostgreSQL cannot"),
        ([math.inf], "result[0] is inf, which JSON does not have."),
        (circle(), "result[0][0][0]"),
        ("\\u0000\x00", "result has a NUL character"),
    ]
    rows = [(InvalidResult, result, *row) for row in said]
    assert differing(rows, refusal, str.startswith) == []

    async def coroutine() -> None: ...

    never = coroutine()
    with pytest.raises(InvalidResult, match="Declare the handler with async def"):
        result(never)
    never.close()
