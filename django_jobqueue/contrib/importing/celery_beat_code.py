"""Reads ``beat_schedule`` in source code, and writes our schedules for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from django_jobqueue.contrib.importing.celery_crontab import FIELDS, cron_of
from django_jobqueue.contrib.importing.foreign_schedule import NotImportable, name_of

DURATIONS: Final = ("seconds", "minutes", "hours", "days")
CELERYS: Final = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")


class BeatEntry(NamedTuple):
    """One entry, where it is, and what to write instead."""

    node: ast.expr
    task: str
    advice: tuple[str, ...]


def beat_entries(value: ast.expr, time_zone: str | None = None) -> Iterator[BeatEntry]:
    """The entries of a dict of schedules, with Celery's time zone if it is known."""
    if not isinstance(value, ast.Dict):
        text = "Write its entries as schedules: <handler>.at(…)(…)."
        yield BeatEntry(value, "", (text,))
        return
    for key, entry in zip(value.keys, value.values, strict=True):
        if key is None:
            text = "Look through the entries in ** by hand."
            yield BeatEntry(entry, "", (text,))
        elif isinstance(entry, ast.Dict):
            yield _entry(key, entry, time_zone)
        else:
            text = f"Write {ast.unparse(entry)} as a schedule by hand."
            yield BeatEntry(key, "", (text,))


def _entry(key: ast.expr, entry: ast.Dict, time_zone: str | None) -> BeatEntry:
    parts = {
        _constant(name): value
        for name, value in zip(entry.keys, entry.values, strict=True)
    }
    task = _constant(parts.get("task"))
    try:
        rule = _rule(parts.get("schedule"))
    except NotImportable as error:
        return BeatEntry(key, task, (str(error),))
    is_cron = rule.startswith("cron")
    if is_cron and time_zone is not None:
        rule = f"{rule.removesuffix(')')}, tz={time_zone!r})"
    name = name_of(_constant(key) or ast.unparse(key))
    handler = task.rpartition(".")[2] or "handler"
    options = parts.get("options")
    using = ""
    if isinstance(options, ast.Dict) and options.keys:
        using = ".using(…)"
    advice = [f"Write {handler}{using}.at({rule}, name={name!r})({_arguments(parts)})."]
    if is_cron and time_zone is None:
        advice.append(
            "It fires in the time zone TIME_ZONE; Celery's is its setting timezone, by "
            "default UTC."
        )
    if using:
        advice.append(f"Its options {ast.unparse(options or key)} go into using().")
    return BeatEntry(key, task, tuple(advice))


def _constant(node: ast.expr | None) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _arguments(parts: Mapping[str, ast.expr]) -> str:
    """The arguments of a call, as they stand in the code."""
    arguments = []
    args, kwargs = parts.get("args"), parts.get("kwargs")
    if isinstance(args, ast.Tuple | ast.List):
        arguments += [ast.unparse(each) for each in args.elts]
    elif args is not None:
        arguments.append(f"*{ast.unparse(args)}")
    if isinstance(kwargs, ast.Dict):
        for key, value in zip(kwargs.keys, kwargs.values, strict=True):
            arguments.append(f"{_constant(key)}={ast.unparse(value)}")
    elif kwargs is not None:
        arguments.append(f"**{ast.unparse(kwargs)}")
    return ", ".join(arguments)


def _rule(node: ast.expr | None) -> str:
    """Our rule for a schedule in Celery's words. Raises NotImportable."""
    match node:
        case None:
            raise NotImportable("It has no schedule.")
        case ast.Constant(value=int() | float() as seconds):
            return f"every(seconds={seconds})"
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            if name == "crontab":
                return _cron(node)
            if name == "solar":
                raise NotImportable("It follows the sun, for which there is no rule.")
            if name == "timedelta":
                return _every(node)
            named = {keyword.arg: keyword.value for keyword in node.keywords}
            if name == "schedule" and (node.args or "run_every" in named):
                return _rule(node.args[0] if node.args else named["run_every"])
    return f"every(seconds={ast.unparse(node)})"


def _every(node: ast.Call) -> str:
    names = [keyword.arg for keyword in node.keywords]
    if node.args or not set(names) <= set(DURATIONS):
        return f"every(seconds={ast.unparse(node)}.total_seconds())"
    written = (f"{k.arg}={ast.unparse(k.value)}" for k in node.keywords)
    return f"every({', '.join(written)})"


def _cron(node: ast.Call) -> str:
    fields = {}
    given = [*zip(CELERYS, node.args, strict=False)]
    given += [(str(k.arg), k.value) for k in node.keywords if k.arg in FIELDS]
    for name, value in given:
        try:
            fields[name] = _field(ast.literal_eval(value))
        except (ValueError, TypeError):
            raise NotImportable(
                f"Write a cron rule by hand: {name} is {ast.unparse(value)}."
            ) from None
    return f"cron({cron_of(fields, 'UTC').expression!r})"


def _field(value: object) -> str:
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(map(str, sorted(value)))
    return str(value)
