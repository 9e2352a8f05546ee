"""Checks JSON values against the annotations of a handler.

A value fits if a type checker would let it pass: ``True`` is an int, an int is a float,
and None fits where it is the default. Annotations that say nothing of JSON values, such
as ``UUID``, a model, or a name that cannot be looked up, allow everything.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, Union, get_args, get_origin

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


class Annotations:
    """The annotations of a function, looked up when they are first needed: they may
    name what its module defines further down."""

    def __init__(self, function: Callable[..., Any] | None) -> None:
        self._function = function
        self._allowed: dict[str, Allowed] | None = None
        self._classes: dict[str, frozenset[type]] = {}

    def fit(self, data: Mapping[str, Any]) -> bool:
        """True if every value is of a type that its parameter allows; it costs next to
        nothing where annotations are plain classes."""
        if self._allowed is None:
            self._resolve()
        classes = self._classes
        for name, value in data.items():
            if name in classes and type(value) not in classes[name]:
                return not self.misfits(data)
        return True

    def misfits(self, data: Mapping[str, Any]) -> list[str]:
        """The errors of the values that do not fit, as sentences. Values that JSON does
        not have are not checked here."""
        allowed = self._resolve() if self._allowed is None else self._allowed
        problems = (
            allowed[name].misfit(value, repr(name))
            for name, value in data.items()
            if name in allowed
        )
        return list(filter(None, problems))

    def _resolve(self) -> dict[str, Allowed]:
        resolved = {}
        if self._function is not None:
            globalns = getattr(inspect.unwrap(self._function), "__globals__", {})
            for name, parameter in inspect.signature(self._function).parameters.items():
                allowed = _allowed_by(parameter, globalns)
                if allowed is not None:
                    resolved[name] = allowed
        self._classes = {name: allowed.classes for name, allowed in resolved.items()}
        self._allowed = resolved
        return resolved


def _allowed_by(
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
