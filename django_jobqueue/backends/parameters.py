"""The call of a task as the data of a job, and back.

Arguments are stored by the names of their parameters, as those of ``@job`` are, so that
they read well in the admin and ``sensitive`` finds them. The key ``*`` holds the rest:
the number of positional arguments (or the arguments themselves, where parameters have
no names), and the task's own backend and ``run_after``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django_jobqueue.backends.compat import normalize_json
from django_jobqueue.backends.job_task import OF_CALLS, POLICY, hint_of_task
from django_jobqueue.domain.arguments import Annotations, Parameters
from django_jobqueue.exceptions import InvalidArguments

STAR: Final = "*"
_STAR_KEYS: Final = {"args", "run_after", "backend"}
_NAMED: Final = (
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)
_UNNAMED: Final = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL}


class InvalidCall(InvalidArguments, TypeError):
    """The arguments of a task do not fit its function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskParameters(Parameters):
    """The parameters of a task's function; some may be positional only."""

    signature: inspect.Signature
    unnamed: bool  # whether some positional arguments have no name

    @classmethod
    def of(cls, function: Callable[..., Any], *, takes_context: bool) -> TaskParameters:
        """Read the signature; the framework has checked the context."""
        parameters = [*inspect.signature(function).parameters.values()][takes_context:]
        named = [p for p in parameters if p.kind in _NAMED]
        return cls(
            function=f"{function.__module__}.{function.__qualname__}",
            positional=tuple(p.name for p in named if p.kind is _NAMED[0]),
            names=frozenset(p.name for p in named),
            required=frozenset(p.name for p in named if p.default is p.empty),
            open_ended=any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters),
            reserved=frozenset(("context",) if takes_context else ()),
            defaults={p.name: p.default for p in named if p.default is not p.empty},
            signature=inspect.Signature(parameters),
            unnamed=any(p.kind in _UNNAMED for p in parameters),
            annotations=Annotations(None),  # no backend checks types
        )

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The data of a job that calls the function with these arguments.

        Raises InvalidCall, which is a TypeError, and TypeError for values that JSON
        cannot hold.
        """
        if not isinstance(kwargs, Mapping):
            raise InvalidCall(Parameters.problem(self, kwargs))
        listed: Any = normalize_json(list(args))
        named: Any = normalize_json(kwargs)
        if STAR in named:
            raise InvalidCall(f"{self.function}() got an argument named {STAR!r}.")
        try:
            if self.unnamed:
                self.signature.bind(*listed, **named)
                return {**named, STAR: {"args": listed}} if listed else named
            data = Parameters.bind(self, listed, named)
        except (InvalidArguments, TypeError) as error:
            raise InvalidCall(self._named(error)) from None
        return {**data, STAR: {"args": len(listed)}} if listed else data

    def near(self, name: str) -> str:
        """A hint for the name of an unknown parameter, as a sentence; it may be
        empty."""
        option = {"queue": "queue_name"}.get(name, name)
        if option in OF_CALLS:
            return f" It is an option of the job: using({option}=…).enqueue(…)."
        if name in POLICY:
            return f" It holds for all jobs of a task: @task({name}=…)."
        return hint_of_task(name, self.names, self.function.rpartition(".")[2])

    def problem(self, data: object) -> str | None:
        """Why the function cannot be called with this data; None if it can."""
        if not isinstance(data, dict) or STAR not in data:
            return self._call_problem([], data)
        star = data[STAR]
        if not isinstance(star, dict) or not star.keys() <= _STAR_KEYS:
            return f"The key {STAR!r} must be an object with some of {_STAR_KEYS}."
        args = star.get("args")
        if args is not None and type(args) is not (list if self.unnamed else int):
            expected = "a list" if self.unnamed else "a number"
            return f"The key {STAR!r} must have {expected} of arguments as its 'args'."
        others = {name: value for name, value in data.items() if name != STAR}
        return self._call_problem(args, others)

    def call(self, data: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The positional and the named arguments of this data."""
        named = dict(data)
        given = named.pop(STAR, {}).get("args")
        if isinstance(given, list):
            return given, named
        first = [name for name in self.positional[: given or 0] if name in named]
        return [named.pop(name) for name in first], named

    def _call_problem(self, args: object, data: object) -> str | None:
        if not self.unnamed or not isinstance(data, dict):
            return Parameters.problem(self, data)
        try:
            self.signature.bind(*(args if isinstance(args, list) else ()), **data)
        except TypeError as error:
            return self._named(error)
        return None

    def _named(self, error: Exception) -> str:
        """The problem of a call, with the name of the function."""
        text = str(error)
        return text if self.function in text else f"{self.function}() got: {text}."
