"""Binds a call to the handler's signature, and converts it to JSON and back.

At the enqueue it refuses everything that would not reach the handler as it was given:
wrong names, values that JSON would change, too much data.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any, Final, NoReturn

from django.core.exceptions import ImproperlyConfigured

from django_jobqueue.domain.job_options import OF_JOB, option_of_types
from django_jobqueue.domain.json_values import (
    MAX_DEPTH,
    Allowed,
    allowed_by_parameter,
    explain,
    result_problem,
)
from django_jobqueue.exceptions import InvalidArguments, InvalidResult
from django_jobqueue.text.foreign_words import OPTIONS, advice
from django_jobqueue.text.suggestions import did_you_mean

SMALLER_DATA: Final = (
    "Store it elsewhere and pass a key, or raise JOBQUEUE['MAX_DATA_BYTES']."
)
_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
).encode
_decode = json.JSONDecoder().decode
_decode_start = json.JSONDecoder().raw_decode
_SCALARS: Final[dict[type, Callable[[Any], str]]] = {
    str: encode_basestring,
    int: int.__repr__,
    bool: {True: "true", False: "false"}.__getitem__,
    type(None): {None: "null"}.__getitem__,
}
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # escaped in JSON, not the text \u0000
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class UnknownParameters(InvalidArguments):
    """The data name parameters that the handler does not have: perhaps newer code
    enqueued them, and will run them."""


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
                allowed = allowed_by_parameter(parameter, globalns)
                if allowed is not None:
                    resolved[name] = allowed
        self._classes = {name: allowed.classes for name, allowed in resolved.items()}
        self._allowed = resolved
        return resolved


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of a handler, by name."""

    function: str  # for messages
    positional: tuple[str, ...]
    defaults: Mapping[str, Any]
    names: frozenset[str]
    required: frozenset[str]
    open_ended: bool  # takes **kwargs
    reserved: frozenset[str]  # given by the worker
    annotations: Annotations

    @classmethod
    def of(cls, function: Callable[..., Any], *, takes_context: bool) -> Parameters:
        """Read the signature. Raises ImproperlyConfigured if jobs cannot fill it."""
        where = f"{function.__module__}.{function.__qualname__}"
        parameters = list(inspect.signature(function).parameters.values())
        if takes_context:
            if not parameters or parameters[0].name != "context":
                raise ImproperlyConfigured(
                    f"@job on {where}: with takes_context=True the first parameter "
                    "must be named 'context'."
                )
            parameters = parameters[1:]
        named = [p for p in parameters if p.kind in _NAMED]
        others = [p for p in parameters if p.kind not in _NAMED]
        open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in others)
        if len(others) > open_ended:
            raise ImproperlyConfigured(
                f"@job on {where}: a job's data is kept by name, so the handler cannot "
                "take *args or positional-only parameters."
            )
        return cls(
            function=where,
            positional=tuple(p.name for p in named if p.kind is _NAMED[0]),
            defaults={p.name: p.default for p in named if p.default is not p.empty},
            names=frozenset(p.name for p in named),
            required=frozenset(p.name for p in named if p.default is p.empty),
            open_ended=open_ended,
            reserved=frozenset(("context",) if takes_context else ()),
            annotations=Annotations(function),
        )

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The data of a job that calls the handler so, without defaults.

        Raises InvalidArguments.
        """
        if len(args) > len(self.positional):
            most = len(self.positional)
            arguments = "argument" if most == 1 else "arguments"
            raise InvalidArguments(
                f"{self.function}() takes at most {most} positional {arguments}, not "
                f"{len(args)}."
            )
        data = {**dict(zip(self.positional, args, strict=False)), **kwargs}
        if len(data) < len(args) + len(kwargs):
            twice = next(
                name for name in self.positional[: len(args)] if name in kwargs
            )
            raise InvalidArguments(f"{self.function}() got {twice!r} twice.")
        if self.required <= data.keys() <= self.names and self.annotations.fit(data):
            return data
        if problem := self.call_problem(data):
            raise InvalidArguments(problem)
        return data

    def bind_call(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """The data of one of many calls, each of which is a dict of arguments. Raises
        InvalidArguments."""
        if type(call) is not dict and not isinstance(call, Mapping):
            raise InvalidArguments(self.problem(call))
        return self.bind((), call)

    def near(self, name: str) -> str:
        """A guess what was meant by a parameter that there is not, as a sentence, or
        nothing."""
        if name in OF_JOB:
            return f" It is an option of the job: using({name}=…).enqueue(…)."
        handler = self.function.rpartition(".")[2]
        return (
            option_of_types(name)
            or did_you_mean(name, self.names)
            or advice(name, OPTIONS, handler)
        )

    def call_problem(self, data: object) -> str | None:
        """Why a job with this data is not enqueued; None if it is.

        Besides names, the types of values are looked at. Whoever runs a job looks at
        names alone: its data may be older than an annotation.
        """
        problem = self.problem(data)
        if not isinstance(data, dict) or (not problem and self.annotations.fit(data)):
            return problem
        wrong = self.annotations.misfits(data)
        if not wrong:
            return problem
        return " ".join([problem or f"{self.function}():", *wrong])

    def _as_dict(self, data: object) -> str:
        """A hint how to write positional arguments as data, as a sentence. Their values
        may be secrets."""
        if not isinstance(data, tuple | list) or not data or not self.positional:
            return ""
        names = self.positional[: len(data)]
        return f" Write {{{', '.join(f'{name!r}: …' for name in names)}}}."

    def problem(self, data: object) -> str | None:
        """Why this data cannot be given to the handler; None if it can."""
        if not isinstance(data, dict):
            return (
                f"The data for {self.function}() must be an object with a key for each "
                f"parameter, not {type(data).__name__}.{self._as_dict(data)}"
            )
        given = data.keys()
        if given == self.names or self.required <= given <= self.names:
            return None
        if self.reserved & data.keys():
            return f"{self.function}() is given its 'context' by the worker."
        missing = self.required - data.keys()
        unknown = [] if self.open_ended else sorted(data.keys() - self.names, key=str)
        problems = []
        for name in unknown:
            hint = self.near(str(name))
            problems.append(f"has no parameter {name!r}.{hint}")
            missing = frozenset(one for one in missing if repr(one) not in hint)
        if missing:
            problems.append(f"is missing {', '.join(map(repr, sorted(missing)))}.")
        return f"{self.function}() {' It '.join(problems)}" if problems else None

    def are_unknown(self, data: object) -> bool:
        """True if this data names a parameter that the handler does not have."""
        if not isinstance(data, dict) or self.open_ended:
            return False
        return bool(data.keys() - self.names - self.reserved)


def several_calls(calls: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """These calls. Raises InvalidArguments for a single one."""
    if isinstance(calls, Mapping | str) or not isinstance(calls, Iterable):
        raise InvalidArguments(
            "enqueue_many takes a list of dicts, one for each job, not "
            f"{type(calls).__name__}. For one job write enqueue(…)."
        )
    return calls


def refuse_call(index: int, error: Exception) -> NoReturn:
    """Raise this error again; it says in which of several calls it is."""
    error.args = (f"calls[{index}]: {error}",)
    raise error


def to_json(
    data: Any, *, limit: int, what: str = "data", advice: str = SMALLER_DATA
) -> str:
    """The JSON text of ``data``, which brings back an equal value.

    ``limit`` is in bytes; ``advice`` says what to do about larger data. Raises
    InvalidArguments, which names the place in the data.
    """
    try:
        flat = _flat_to_json(data)
        text = _encode(data) if flat is None else flat
        size = len(text.encode())
        faithful = flat is not None or json.loads(text) == data
    except (TypeError, ValueError, RecursionError, UnicodeEncodeError) as error:
        raise InvalidArguments(explain(data, what) or f"{what}: {error}") from error
    if not faithful or "\\u0000" in text or not (flat or _is_plain(text)):
        problem = explain(data, what)
        if problem or not faithful:
            raise InvalidArguments(problem or f"{what} would not survive as JSON.")
    if size > limit:
        raise InvalidArguments(
            f"{what} is {size:,} bytes of JSON; at most {limit:,} are allowed. {advice}"
        )
    return text


def result_to_json(value: Any, *, limit: int) -> str:
    """The JSON text of a handler's result, or a note of its size if it is too large.

    Raises InvalidResult, which names the place in the result.
    """
    try:
        text = _encode(value)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError, UnicodeEncodeError) as error:
        why = result_problem(value) or f"The result is not JSON: {error}."
        raise InvalidResult(why) from None
    if "\\u0000" in text and _NUL.search(text):
        raise InvalidResult(result_problem(value) or "The result has a NUL character.")
    if size > limit:
        note = f"result of {size:,} bytes; only {limit:,} are kept"
        return json.dumps({"not_kept": note})
    return text


def from_json(text: str) -> Any:
    """The value of a JSON text from the database, which begins with it at once.

    Raises ValueError.
    """
    try:
        value, end = _decode_start(text)
        return value if end == len(text) else _decode(text)
    except RecursionError as error:
        raise ValueError("the data is nested too deep") from error


def _flat_to_json(data: Any) -> str | None:
    """The JSON text of a dict of strings, integers and the like, as most data are; None
    if it is anything else.

    For each call json's own encoder makes objects that cost more than the encoding.
    """
    if type(data) is not dict:
        return None
    parts = []
    for key, value in data.items():
        written = _SCALARS.get(type(value))
        if written is None or type(key) is not str:
            return None
        parts.append(f"{encode_basestring(key)}:{written(value)}")
    return f"{{{','.join(parts)}}}"


def _is_plain(text: str) -> bool:
    """True if this has no large floats, and cannot be too deep."""
    return "e+" not in text and text.count("[") + text.count("{") <= MAX_DEPTH
