"""Writes planned imports as Python for ``jobs.py``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from django_jobqueue.contrib.importing.import_plan import NEW, Becomes, PlannedImport
from django_jobqueue.domain.registry import Declaration
from django_jobqueue.domain.schedule_rules import EPOCH, Cron, ScheduleRule
from django_jobqueue.logs import one_line

UNITS: Final = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


def as_code(planned: Sequence[PlannedImport]) -> str:
    """Python that declares what is planned; what cannot be declared is a comment."""
    handlers = _handlers(planned)
    lines: list[str] = []
    for item in planned:
        lines += ["", *_statement(item, handlers)]
    body = "\n".join(lines)
    return "\n".join([*_imports(body, planned, handlers), body])


def _handlers(planned: Sequence[PlannedImport]) -> dict[str, str]:
    """How to write each handler: by its function's name, or with its module where
    another one is called the same."""
    declarations = {i.declaration.name: i.declaration for i in planned if i.declaration}
    counts = Counter(map(_function, declarations.values()))
    return {
        name: _function(one)
        if counts[_function(one)] == 1
        else f"{one.function.__module__}.{_function(one)}"
        for name, one in declarations.items()
    }


def _function(declaration: Declaration) -> str:
    return declaration.function.__qualname__


def _imports(
    body: str, planned: Sequence[PlannedImport], handlers: Mapping[str, str]
) -> Iterator[str]:
    if "datetime(" in body:
        yield "from datetime import UTC, datetime\n"
    rules = [name for name in ("cron", "every") if f"({name}(" in body]
    if rules:
        yield f"from django_jobqueue import {', '.join(rules)}"
    lines = set()
    for item in planned:
        if item.declaration is not None and item.becomes in NEW:
            module = item.declaration.function.__module__
            name = handlers[item.job_type]
            is_short = name == _function(item.declaration)
            lines.add(
                f"from {module} import {name.partition('.')[0]}"
                if is_short
                else f"import {module}"
            )
    yield from sorted(lines)


def _statement(item: PlannedImport, handlers: Mapping[str, str]) -> Iterator[str]:
    """The lines for one of them."""
    about = f"{item.name} ({item.theirs.task})"
    for note in item.theirs.notes:
        yield _comment(f"{item.name}: {note}")
    match item.becomes:
        case Becomes.REFUSED:
            yield _comment(f"{about} is refused: {item.reason}")
        case Becomes.THERE:
            yield _comment(f"{about} is here already.")
        case Becomes.JOB:
            yield _comment(f"{about}: once, so not in jobs.py.")
            yield _comment(_enqueue(item, handlers))
        case Becomes.PAUSED:
            yield _comment(f"{about} is disabled there.")
            yield _comment(_at(item, handlers))
        case Becomes.SCHEDULE:
            yield _at(item, handlers)


def _comment(text: str) -> str:
    return f"# {one_line(text)}"


def _at(item: PlannedImport, handlers: Mapping[str, str]) -> str:
    one = item.theirs
    assert one.rule is not None
    handler = handlers[item.job_type]
    if one.options:
        handler += f".using({_keywords(one.options)})"
    options = {} if item.name == item.job_type else {"name": item.name}
    parts = [_rule(one.rule), _keywords({**options, **one.period})]
    return f"{handler}.at({', '.join(filter(None, parts))})({_keywords(item.data)})"


def _enqueue(item: PlannedImport, handlers: Mapping[str, str]) -> str:
    options = {**item.job_options, "id": str(item.id)}
    call = f".using({_keywords(options)}).enqueue({_keywords(item.data)})"
    return handlers[item.job_type] + call


def _rule(rule: ScheduleRule) -> str:
    if isinstance(rule, Cron):
        return f"cron({rule.expression!r}, tz={rule.time_zone!r})"
    seconds = int(rule.interval.total_seconds())
    unit = next(unit for unit, length in UNITS.items() if seconds % length == 0)
    values: dict[str, Any] = {unit: seconds // UNITS[unit]}
    if rule.since != EPOCH:
        values["since"] = rule.since
    return f"every({_keywords(values)})"


def _keywords(values: Mapping[str, Any]) -> str:
    if not all(name.isidentifier() for name in values):
        return f"**{values!r}"
    return ", ".join(f"{name}={_literal(value)}" for name, value in values.items())


def _literal(value: object) -> str:
    if not isinstance(value, datetime):
        return repr(value)
    moment = value.astimezone(UTC)
    parts = [moment.year, moment.month, moment.day, moment.hour, moment.minute]
    if moment.second or moment.microsecond:
        parts.append(moment.second)
    if moment.microsecond:
        parts.append(moment.microsecond)
    return f"datetime({', '.join(map(str, parts))}, tzinfo=UTC)"
