"""Checks values against the annotations of a handler, and against JSON.

A value fits if a type checker would let it pass: ``True`` is an int, an int is a float,
and None fits where it is the default. Annotations that say nothing of JSON values, such
as ``UUID``, a model, or a name that cannot be looked up, allow everything.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple, Union, get_args, get_origin

MAX_DEPTH: Final = 100
DEEPEST_RESULT: Final = 200
_NONE: Final = type(None)
_JSON: Final = (str, int, float, list, dict, _NONE)
_SCALARS: Final[Mapping[Any, tuple[type, ...]]] = {
    None: (_NONE,),
    _NONE: (_NONE,),
    bool: (bool,),
    str: (str,),
    int: (int, bool),
    float: (float, int, bool),
}
_ALIASES: Final = (typing.NewType, getattr(typing, "TypeAliasType", typing.NewType))


class Allowed(NamedTuple):
    """The values that an annotation allows."""

    described: str
    classes: frozenset[type]  # values of exactly these need no further look
    misfit: Callable[[Any, str], str | None]  # a value, and its place

    def fits(self, value: object) -> bool:
        """True if this value is allowed."""
        return type(value) in self.classes or self.misfit(value, "") is None


def allowed_by_parameter(
    parameter: inspect.Parameter, globalns: dict[str, Any]
) -> Allowed | None:
    """The values that the annotation of a parameter allows; None if it allows all."""
    annotation = parameter.annotation
    named = parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY
    if annotation is parameter.empty or parameter.kind not in named:
        return None
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    try:  # one by one: another's name may exist for type checkers alone
        hint = typing.get_type_hints(holder, globalns)["it"]
        return allowed_by(hint | None if parameter.default is None else hint)
    except Exception:  # an alias that contains itself, too
        return None


def allowed_by(hint: Any) -> Allowed | None:
    """The values that a type allows; None if it says nothing of JSON values."""
    while isinstance(hint, _ALIASES):
        hint = getattr(hint, "__value__", None) or hint.__supertype__
    if (isinstance(hint, type) or hint is None) and hint in _SCALARS:
        return _of_classes(_described(hint), _SCALARS[hint])
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if origin is list:
        return _list_of(hint, *arguments)
    if origin is dict:
        return _dict_of(hint, *arguments[1:])
    if origin is Literal:
        return _one_of(hint, arguments)
    if origin in (Union, types.UnionType):
        return _any_of(hint, [allowed_by(argument) for argument in arguments])
    return None


def _of_classes(described: str, classes: tuple[type, ...]) -> Allowed:
    def misfit(value: Any, place: str) -> str | None:
        if isinstance(value, classes) or not isinstance(value, _JSON):
            return None
        return f"{place} must be {described}, not {type(value).__name__}."

    return Allowed(described, frozenset(classes), misfit)


def _list_of(hint: Any, element: Any = None) -> Allowed:
    plain = _of_classes(_described(hint), (list,))
    of = None if element is None else allowed_by(element)
    if of is None:
        return plain

    def misfit(value: Any, place: str) -> str | None:
        if type(value) is not list:
            return plain.misfit(value, place)
        if of.classes.issuperset(map(type, value)):
            return None
        problems = (of.misfit(v, f"{place}[{i}]") for i, v in enumerate(value))
        return next(filter(None, problems), None)

    return Allowed(plain.described, frozenset(), misfit)


def _dict_of(hint: Any, element: Any = None) -> Allowed:
    plain = _of_classes(_described(hint), (dict,))
    of = None if element is None else allowed_by(element)
    if of is None:
        return plain

    def misfit(value: Any, place: str) -> str | None:
        if type(value) is not dict:
            return plain.misfit(value, place)
        if of.classes.issuperset(map(type, value.values())):
            return None
        problems = (of.misfit(v, f"{place}[{k!r}]") for k, v in value.items())
        return next(filter(None, problems), None)

    return Allowed(plain.described, frozenset(), misfit)


def _one_of(hint: Any, values: tuple[Any, ...]) -> Allowed | None:
    if not all(type(value) in (str, int, bool, _NONE) for value in values):
        return None  # of an enumeration: JSON has its values, not its members
    known = {(isinstance(value, bool), value) for value in values}
    described = " or ".join(map(repr, values))

    def misfit(value: Any, place: str) -> str | None:
        if not isinstance(value, _JSON):
            return None
        scalar = isinstance(value, str | int | _NONE)
        if scalar and (isinstance(value, bool), value) in known:
            return None
        return f"{place} must be {described}."

    return Allowed(described, frozenset(), misfit)


def _any_of(hint: Any, members: list[Allowed | None]) -> Allowed | None:
    known = [member for member in members if member is not None]
    if len(known) < len(members):
        return None
    classes = frozenset().union(*(member.classes for member in known))
    described = _described(hint)

    def misfit(value: Any, place: str) -> str | None:
        if any(member.fits(value) for member in known):
            return None
        return f"{place} must be {described}, not {type(value).__name__}."

    return Allowed(described, classes, misfit)


def _described(hint: Any) -> str:
    """The type as one would write it: ``int | None``, ``list[int]``."""
    if hint is None or hint is _NONE:
        return "None"
    if get_origin(hint) in (Union, types.UnionType):
        return " | ".join(map(_described, get_args(hint)))
    return inspect.formatannotation(hint)


# What JSON does not have, or would not bring back.


def explain(value: Any, path: str, depth: int = 0) -> str | None:
    """The part of this value that JSON would not bring back, and its place; None if
    there is none."""
    if depth > MAX_DEPTH:
        return f"{path[:200]} is nested deeper than {MAX_DEPTH} levels."
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return _explain_text(value, path)
    if isinstance(value, int | float):
        return _explain_number(value, path)
    if isinstance(value, dict):
        return _explain_dict(value, path, depth)
    if isinstance(value, list):
        for index, item in enumerate(value):
            if problem := explain(item, f"{path}[{index}]", depth + 1):
                return problem
        return None
    if isinstance(value, tuple):
        return f"{path} is a tuple, which JSON brings back as a list; pass a list."
    return (
        f"{path} is {_article(type(value).__name__)}, which JSON does not have; pass a "
        "string, a number or a key, and let the handler look it up."
    )


def _explain_dict(value: dict[Any, Any], path: str, depth: int) -> str | None:
    for key, item in value.items():
        if not isinstance(key, str):
            return f"{path} has the key {key!r}; JSON keys are strings."
        problem = _explain_text(key, f"a key of {path}")
        problem = problem or explain(item, f"{path}[{key!r}]", depth + 1)
        if problem:
            return problem
    return None


def _article(name: str) -> str:
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


def _explain_text(value: str, path: str) -> str | None:
    if "\x00" in value:
        return f"{path} has a NUL character, which PostgreSQL cannot store."
    try:
        value.encode()
    except UnicodeEncodeError:
        return f"{path} has half of a surrogate pair, which is not text."
    return None


def _explain_number(value: float, path: str) -> str | None:
    """PostgreSQL keeps JSON numbers as decimals, so 1e300 comes back as an integer."""
    if isinstance(value, int):
        try:
            str(value)
        except ValueError:
            return f"{path} has more digits than Python reads back; pass a string."
        return None
    if value != value or value in (float("inf"), float("-inf")):
        return f"{path} is {value}, which JSON does not have."
    exact = Decimal(repr(float(value)))
    if abs(value) >= 1e16 and int(exact) != value:
        return f"{path} is {value}, which would come back as another number."
    return None


def result_problem(value: Any, path: str = "result", depth: int = 0) -> str | None:
    """The part of this result that JSON does not have, and its place; None if there is
    none. Unlike data, a result need not come back unchanged: a tuple may become a
    list."""
    if depth > DEEPEST_RESULT:
        return f"{path[:200]} … is nested too deep, or contains itself."
    if isinstance(value, dict | list | tuple):
        problems = _problems_inside(value, path, depth + 1)
        return next(filter(None, problems), None)
    if value is None or isinstance(value, str | int | float):
        return _scalar_problem(value, path)
    type_name = _article(type(value).__name__)
    if inspect.isawaitable(value):
        return (
            f"{path} is {type_name}, which nobody awaits. Declare the handler with "
            "async def, or await it there."
        )
    return (
        f"{path} is {type_name}, which JSON does not have. Return a string, a number, "
        "a key, or a list or dict of them."
    )


def _problems_inside(value: Any, path: str, depth: int) -> Iterator[str | None]:
    if not isinstance(value, dict):
        for index, item in enumerate(value):
            yield result_problem(item, f"{path}[{index}]", depth)
        return
    for key, item in value.items():
        if not isinstance(key, str | int | float | None):
            type_name = _article(type(key).__name__)
            yield f"{path} has a key that is {type_name}; JSON keys are strings."
        yield _scalar_problem(key, f"a key of {path}")
        yield result_problem(item, f"{path}[{key!r}]", depth)


def _scalar_problem(value: object, path: str) -> str | None:
    """Why JSON does not have this scalar."""
    if isinstance(value, str):
        return _explain_text(value, path)
    if isinstance(value, float) and value - value != 0:
        return f"{path} is {value}, which JSON does not have."
    return _explain_number(value, path) if isinstance(value, int) else None
