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

import pytest

from django_jobqueue import Context, InvalidArguments, enqueue, operations
from django_jobqueue.domain.annotations import Annotations, allowed_by
from django_jobqueue.domain.arguments import Parameters
from tests.sample import jobs

if TYPE_CHECKING:
    from nowhere import Unknown  # type: ignore[import-not-found]

OrderId = NewType("OrderId", int)


class Colour(StrEnum):
    RED = "red"


class Row(TypedDict):
    username: str


# One value of each kind that JSON has, and of those that only look like one.
VALUES: dict[str, Any] = {
    "null": None,
    "true": True,
    "int": 7,
    "float": 1.5,
    "text": "red",
    "list": [],
    "ints": [1, 2],
    "mixed": [1, "x"],
    "dict": {},
    "texts": {"a": "x"},
    "numbers": {"a": 1},
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
    Any,
    object,
    UUID,
    datetime,
    Colour,
    Row,
    tuple[int, ...],
    typing.Sequence[int],
    int | Any,
    int | UUID,
    Literal[Colour.RED],
    Callable[..., None],
    typing.TypeVar("T"),  # type: ignore[misc]
]


def annotated(hint: Any, default: Any = ...) -> Callable[..., None]:
    """A function with a parameter of this type."""

    def function(a: Any = default) -> None: ...

    function.__annotations__["a"] = hint
    return function


def fits(hint: Any, value: Any) -> bool:
    """Whether both ways of asking say so."""
    annotations = Annotations(annotated(hint))
    quick = annotations.fit({"a": value})
    assert quick is (annotations.misfits({"a": value}) == [])
    return quick


@pytest.mark.parametrize("hint", ALLOWED, ids=str)
def test_a_value_fits_where_a_type_checker_lets_it_pass(hint: Any) -> None:
    wanted = set(ALLOWED[hint].split())
    assert {name for name, value in VALUES.items() if fits(hint, value)} == wanted


@pytest.mark.parametrize("hint", EVERYTHING, ids=str)
def test_a_type_that_says_nothing_of_json_allows_everything(hint: Any) -> None:
    assert allowed_by(hint) is None
    assert all(fits(hint, value) for value in VALUES.values())


PAIRS = [*itertools.combinations(ALLOWED, 2)]


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=str)
def test_a_union_allows_what_either_does(one: Any, other: Any) -> None:
    either = {*ALLOWED[one].split(), *ALLOWED[other].split()}
    hint = typing.Union[one, other]  # noqa: UP007
    assert {name for name, value in VALUES.items() if fits(hint, value)} == either


@pytest.mark.parametrize("hint", ALLOWED, ids=str)
def test_none_fits_where_it_is_the_default(hint: Any) -> None:
    assert Annotations(annotated(hint, default=None)).fit({"a": None})


NOT_JSON = [datetime(2026, 1, 1), UUID(int=1), (1, 2), {1}, b"x", object()]


@pytest.mark.parametrize("value", NOT_JSON, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("hint", ALLOWED, ids=str)
def test_what_json_does_not_have_is_explained_by_those_who_write_it(
    hint: Any, value: Any
) -> None:
    assert Annotations(annotated(hint)).misfits({"a": value}) == []


def test_an_annotation_may_be_a_text_and_name_what_comes_later() -> None:
    assert Annotations(later).misfits({"a": "x"}) == ["'a' must be int, not str."]


def later(a: LaterId) -> None: ...


LaterId = NewType("LaterId", int)


def partly(a: int, b: Unknown, c: str) -> None: ...


def test_a_name_that_type_checkers_alone_know_leaves_the_others() -> None:
    assert Annotations(partly).misfits({"a": "x", "b": 1, "c": 2}) == [
        "'a' must be int, not str.",
        "'c' must be str, not int.",
    ]


@functools.wraps(later)
def wrapped(*args: Any, **kwargs: Any) -> None: ...


def test_the_annotations_of_a_wrapped_function_are_its_own() -> None:
    assert Annotations(wrapped).misfits({"a": "x"}) == ["'a' must be int, not str."]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type statements are of 3.12")
def test_an_alias_is_what_it_stands_for_unless_it_contains_itself() -> None:
    namespace: dict[str, Any] = {}
    source = "type Id = int\ntype Json = list[Json] | int\n"
    source += "def one(a: Id): ...\ndef two(a: Json): ...\n"
    exec(source, namespace)
    assert Annotations(namespace["one"]).misfits({"a": "x"})
    assert Annotations(namespace["two"]).misfits({"a": "x"}) == []


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [
        (int, "x", "'a' must be int, not str."),
        (int | None, [], "'a' must be int | None, not list."),
        (list[int], "x", "'a' must be list[int], not str."),
        (list[int], [1, "x"], "'a'[1] must be int, not str."),
        (dict[str, list[int]], {"k": [1, None]}, "'a'['k'][1] must be int, not NoneT"),
        (Literal["a", "b"], "c", "'a' must be 'a' or 'b'."),
        (dict[str, str] | None, {"k": 1}, "'a' must be dict[str, str] | None, not d"),
    ],
)
def test_the_message_says_which_value_and_what_it_should_be(
    hint: Any, value: Any, message: str
) -> None:
    (said,) = Annotations(annotated(hint)).misfits({"a": value})
    assert said.startswith(message)
    assert str(value) not in said or value == []


def look(context: Context, order_id: int, copies: int = 1, note: str = "") -> None: ...


def refused(function: Callable[..., Any], **data: Any) -> str:
    bound = Parameters.of(function, takes_context=function is look)
    with pytest.raises(InvalidArguments) as caught:
        bound.bind((), data)
    return str(caught.value).removeprefix(f"{__name__}.")


def test_all_that_is_wrong_with_a_call_is_told_at_once() -> None:
    assert refused(look, order_id="7", copies=None, note=7) == (
        "look(): 'order_id' must be int, not str. 'copies' must be int, not NoneType. "
        "'note' must be str, not int."
    )
    assert refused(look, copies="2", colour="red", size=1) == (
        "look() has no parameter 'colour'. It has no parameter 'size'. It is missing "
        "'order_id'. 'copies' must be int, not str."
    )


def test_a_name_that_was_probably_meant_is_not_said_to_be_missing() -> None:
    assert refused(look, order=7) == (
        "look() has no parameter 'order'. Did you mean 'order_id'?"
    )


def test_values_of_a_secret_are_not_in_the_message() -> None:
    assert refused(jobs.leak.function, token=12345) == (
        "tests.sample.jobs.leak(): 'token' must be str, not int."
    )


ENTRANCES: dict[str, Callable[[], Any]] = {
    "enqueue": lambda: jobs.add.enqueue("x"),  # type: ignore[arg-type]
    "enqueue_many": lambda: jobs.add.enqueue_many([{"a": "x"}]),
    "by name": lambda: enqueue("tests.sample.add", {"a": "x"}),
    "by hand": lambda: operations.enqueue("tests.sample.add", {"a": "x"}),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_every_way_to_enqueue_looks_at_types(entrance: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        ENTRANCES[entrance]()
    said = str(caught.value).removeprefix("calls[0]: ")
    assert said == "tests.sample.jobs.add(): 'a' must be int, not str."


def test_a_job_that_waits_is_not_held_to_an_annotation() -> None:
    """It may be older; whoever runs it looks at names alone."""
    assert jobs.add.declaration.parameters.problem({"a": "x"}) is None
