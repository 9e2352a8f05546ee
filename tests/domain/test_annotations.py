"""Types of arguments: a value fits if a type checker would let it pass, and every value
that does not is told at once."""

from __future__ import annotations

import functools
import itertools
import sys
import typing
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType, TypedDict
from uuid import UUID

from django_jobqueue import Context, InvalidArguments, enqueue, operations
from django_jobqueue.domain.arguments import Annotations, Parameters
from django_jobqueue.domain.json_values import allowed_by
from tests.sample import jobs
from tests.support.tables import differing, refusal

if TYPE_CHECKING:
    from nowhere import Unknown  # type: ignore[import-not-found]

OrderId = NewType("OrderId", int)


class Colour(StrEnum):
    RED = "red"


class Row(TypedDict):
    username: str


# One value of each kind that JSON has, and of those that only look like one.
VALUES: dict[str, Any] = {
    **{"null": None, "true": True, "int": 7, "float": 1.5, "text": "red"},
    **{"list": [], "ints": [1, 2], "mixed": [1, "x"]},
    **{"dict": {}, "texts": {"a": "x"}, "numbers": {"a": 1}},
}
# Which of them a type checker lets pass.
ALLOWED: dict[Any, str] = {
    None: "null",
    bool: "true",
    int: "int true",
    float: "int float true",
    str: "text",
    list: "list ints mixed",
    dict: "dict texts numbers",
    list[int]: "list ints",
    list[str]: "list",
    list[int | str]: "list ints mixed",
    typing.List[int]: "list ints",  # noqa: UP006
    dict[str, str]: "dict texts",
    dict[str, int]: "dict numbers",
    dict[str, Any]: "dict texts numbers",
    list[Any]: "list ints mixed",
    int | None: "int true null",
    typing.Optional[str]: "text null",  # noqa: UP045
    int | list[int]: "int true list ints",
    Literal["red", "blue"]: "text",
    Literal[7, None]: "int null",
    Literal[1]: "",
    Literal[True]: "true",
    OrderId: "int true",
    Annotated[int, "an id"]: "int true",
}
EVERYTHING: list[Any] = [
    *(Any, object, UUID, datetime, Colour, Row, tuple[int, ...], typing.Sequence[int]),
    *(int | Any, int | UUID, Literal[Colour.RED], Callable[..., None]),
    typing.TypeVar("T"),  # type: ignore[misc]
]


def annotated(hint: Any, default: Any = ...) -> Callable[..., None]:
    def function(a: Any = default) -> None: ...

    function.__annotations__["a"] = hint
    return function


def fits(hint: Any, value: Any) -> bool:
    """Whether both ways of asking say so."""
    annotations = Annotations(annotated(hint))
    quick = annotations.fit({"a": value})
    assert quick is (annotations.misfits({"a": value}) == [])
    return quick


def fitting(hint: Any) -> set[str]:
    return {name for name, value in VALUES.items() if fits(hint, value)}


def test_a_value_fits_where_a_type_checker_lets_it_pass() -> None:
    rows = [(hint, {*names.split()}) for hint, names in ALLOWED.items()]
    assert differing(rows, fitting) == []
    # One that says nothing of JSON allows everything.
    assert [hint for hint in EVERYTHING if allowed_by(hint) is not None] == []
    assert differing([(hint, {*VALUES}) for hint in EVERYTHING], fitting) == []
    rows = [
        (typing.Union[one, other], {*ALLOWED[one].split(), *ALLOWED[other].split()})  # noqa: UP007
        for one, other in itertools.combinations(ALLOWED, 2)
    ]
    assert differing(rows, fitting) == []
    for hint in ALLOWED:
        assert Annotations(annotated(hint, default=None)).fit({"a": None}), hint
    values = (datetime(2026, 1, 1), UUID(int=1), (1, 2), {1}, b"x", object())
    rows = [(hint, value, []) for hint in ALLOWED for value in values]
    assert differing(rows, misfits) == []


def misfits(hint: Any, value: Any) -> list[str]:
    return Annotations(annotated(hint)).misfits({"a": value})


def later(a: LaterId) -> None: ...


LaterId = NewType("LaterId", int)


def partly(a: int, b: Unknown, c: str) -> None: ...


@functools.wraps(later)
def wrapped(*args: Any, **kwargs: Any) -> None: ...


def test_an_annotation_may_be_a_text_and_name_what_comes_later() -> None:
    """And a name that type checkers alone know leaves the others."""
    for function in (later, wrapped):
        assert Annotations(function).misfits({"a": "x"}) == [
            "'a' must be int, not str."
        ]
    assert Annotations(partly).misfits({"a": "x", "b": 1, "c": 2}) == [
        "'a' must be int, not str.",
        "'c' must be str, not int.",
    ]


if sys.version_info >= (3, 12):  # before, there are no such statements

    def test_an_alias_is_what_it_stands_for_unless_it_contains_itself() -> None:
        namespace: dict[str, Any] = {}
        source = "type Id = int\ntype Json = list[Json] | int\n"
        source += "def one(a: Id): ...\ndef two(a: Json): ...\n"
        exec(source, namespace)
        assert Annotations(namespace["one"]).misfits({"a": "x"})
        assert Annotations(namespace["two"]).misfits({"a": "x"}) == []


def test_the_message_says_all_that_is_wrong_and_what_it_should_be() -> None:
    said = [
        (int, "x", "'a' must be int, not str."),
        (int | None, [], "'a' must be int | None, not list."),
        (list[int], "x", "'a' must be list[int], not str."),
        (list[int], [1, "x"], "'a'[1] must be int, not str."),
        (dict[str, list[int]], {"k": [1, None]}, "'a'['k'][1] must be int, not None"),
        (Literal["a", "b"], "c", "'a' must be 'a' or 'b'."),
        (dict[str, str] | None, {"k": 1}, "'a' must be dict[str, str] | None, not d"),
    ]
    assert differing(said, lambda *case: misfits(*case)[0], str.startswith) == []
    secret = {"k": "s3cret"}
    assert "s3cret" not in misfits(dict[str, int], secret)[0]
    assert refused(look, order_id="7", copies=None, note=7) == (
        "look(): 'order_id' must be int, not str. 'copies' must be int, not NoneType. "
        "'note' must be str, not int."
    )
    assert refused(look, copies="2", colour="red", size=1) == (
        "look() has no parameter 'colour'. It has no parameter 'size'. It is missing "
        "'order_id'. 'copies' must be int, not str."
    )
    assert refused(look, order=7) == (
        "look() has no parameter 'order'. Did you mean 'order_id'?"
    )
    assert refused(jobs.leak.function, token=12345) == (
        "tests.sample.jobs.leak(): 'token' must be str, not int."  # a secret
    )


def look(context: Context, order_id: int, copies: int = 1, note: str = "") -> None: ...


def refused(function: Callable[..., Any], **data: Any) -> str:
    bound = Parameters.of(function, takes_context=function is look)
    said = refusal(InvalidArguments, bound.bind, (), data)
    return said.removeprefix(f"{__name__}.")


def test_every_way_to_enqueue_looks_at_types() -> None:
    for entrance in (
        lambda: jobs.add.enqueue("x"),  # type: ignore[arg-type]
        lambda: jobs.add.enqueue_many([{"a": "x"}]),
        lambda: enqueue("tests.sample.add", {"a": "x"}),
        lambda: operations.enqueue("tests.sample.add", {"a": "x"}),
    ):
        said = refusal(InvalidArguments, entrance).removeprefix("calls[0]: ")
        assert said == "tests.sample.jobs.add(): 'a' must be int, not str."
    # A job that waits may be older; whoever runs it looks at names alone.
    assert jobs.add.declaration.parameters.problem({"a": "x"}) is None
