"""Finds Celery in source code, without importing it, and says what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from django_jobqueue.contrib.importing.celery_beat_code import beat_entries
from django_jobqueue.contrib.importing.celery_canvas import (
    CALLS,
    canvases,
    is_enqueued,
    last_name,
)
from django_jobqueue.contrib.importing.celery_options import (
    argument_advice,
    option_advice,
    request_advice,
    retry_advice,
    sentence,
)
from django_jobqueue.contrib.importing.celery_source import (
    base_of,
    calls_retry,
    celery_names,
    declared,
    enqueues,
    is_app,
    is_declaration,
    parsed_file,
    python_files,
    time_zone_of,
    without_call,
)
from django_jobqueue.contrib.importing.celery_words import (
    CONTROL,
    EXCEPTIONS,
    SETTINGS,
    SIGNALS,
    setting_of,
)
from django_jobqueue.text.foreign_words import HANDLER, IN_HANDLER, JOB, OPTIONS

BEAT_SETTINGS: Final = {"beat_schedule", "CELERY_BEAT_SCHEDULE", "CELERYBEAT_SCHEDULE"}

RESULT: Final = (
    "Write get_job(id); wait(id, timeout=10).result waits for what the job returns."
)
# Methods that other objects have too, looked for on known tasks only.
OF_TASKS: Final = ("apply", "chunks", "map", "s", "si", "signature", "starmap")
RETRIED: Final = {"autoretry_for", "max_retries", None}  # None: ``**options``
NOT_RETRIED: Final = (
    "It is not retried in Celery: write @job(max_attempts=1), or let failures be tried "
    "again."
)
BASE: Final = (
    "Read its base class {base}: what it has of autoretry_for and max_retries is to be "
    "written here; if it has none of them, write @job(max_attempts=1)."
)
ON_COMMIT: Final = (
    "Leave on_commit out: the job is enqueued in the transaction, and is there when it "
    "commits."
)


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Finding:
    """A place in the code, and what to write instead."""

    path: str
    line: int
    found: str  # "@shared_task", ".delay()", …
    name: str  # of the task, or empty
    advice: tuple[str, ...]  # sentences

    def as_json(self) -> dict[str, object]:
        """For programs."""
        return {**asdict(self), "advice": list(self.advice)}


def scan(path: Path) -> list[Finding]:
    """What there is of Celery in this file, or in the Python files below this
    folder."""
    sources = {str(one): parsed_file(one) for one in python_files(path)}
    trees = {name: t for name, t in sources.items() if isinstance(t, ast.Module)}
    tasks = {name for tree in trees.values() for name in declared(tree)}
    findings = [
        Finding(
            path=name,
            line=problem.lineno or 1 if isinstance(problem, SyntaxError) else 1,
            found="unreadable",
            name="",
            advice=(f"This file cannot be read: {problem}",),
        )
        for name, problem in sources.items()
        if isinstance(problem, Exception)
    ]
    for name, tree in trees.items():
        findings += _Scan(name, tree, tasks).findings()
    return sorted(findings)


def _send_task(name: str) -> str:
    """By the name of the job type that stands for this task."""
    app, _, function = name.rpartition(".")
    ours = f"{app.removesuffix('.tasks')}.{function}" if app else "app.function"
    return f"Write enqueue({ours!r}, {{…}}) of django_jobqueue."


class _Scan:
    """One file."""

    def __init__(self, path: str, tree: ast.Module, tasks: set[str]) -> None:
        self._path = path
        self._tree = tree
        self._names = names = celery_names(tree)
        self._tasks = tasks
        self._canvas = {id(one.node): one for one in canvases(tree, names, tasks)}
        self._within = {
            id(each)
            for one in self._canvas.values()
            for each in ast.walk(one.node)
            if each is not one.node
        }
        self._called = {
            id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)
        }
        self._assigned = {
            target.id: node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        self._time_zone = time_zone_of(tree)

    def findings(self) -> Iterator[Finding]:
        """All that there is in it."""
        for node in ast.walk(self._tree):
            if (one := self._canvas.get(id(node))) is not None:
                yield self._finding(one.node, one.name, "", one.advice)
            elif isinstance(node, ast.expr) and id(node) not in self._within:
                yield from self._expression(node)
            elif not isinstance(node, ast.expr):
                yield from self._statement(node)

    def _expression(self, node: ast.expr) -> Iterator[Finding]:
        if isinstance(node, ast.Call):
            yield from self._call(node)
        elif isinstance(node, ast.Attribute) and id(node) not in self._called:
            yield from self._attribute(node)

    def _statement(self, node: ast.AST) -> Iterator[Finding]:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from self._declarations(node)
            case ast.ClassDef(bases=bases) if any(map(self._is_task, bases)):
                advice = "There are no classes; write a function with @job"
                yield self._finding(node, "Task", node.name, [sentence(advice)])
            case ast.ExceptHandler(type=ast.expr() as caught):
                yield from self._exceptions(caught, "except ")
            case ast.Raise(exc=ast.expr() as raised):
                yield from self._exceptions(without_call(raised), "raise ")
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                yield from self._assignment(target, node.value)

    def _finding(
        self, node: ast.stmt | ast.expr, found: str, name: str, advice: Sequence[str]
    ) -> Finding:
        return Finding(
            path=self._path,
            line=node.lineno,
            found=found,
            name=name,
            advice=tuple(advice),
        )

    def _is_task(self, base: ast.expr) -> bool:
        if isinstance(base, ast.Name):
            return self._names.get(base.id) == "Task"
        return ast.unparse(base) in ("celery.Task", "app.Task")

    def _declarations(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> Iterator[Finding]:
        for decorator in node.decorator_list:
            bare = without_call(decorator)
            if not is_declaration(bare, self._names):
                continue
            advice = ["Write @job, in jobs.py."]
            given = set()
            if isinstance(decorator, ast.Call):
                advice += option_advice(decorator, node.name)
                given = {keyword.arg for keyword in decorator.keywords}
            if not given & RETRIED and not calls_retry(node):
                base = base_of(decorator)
                advice.append(BASE.format(base=base) if base else NOT_RETRIED)
            parameters = node.args
            if parameters.vararg or parameters.posonlyargs:
                advice.append(
                    "A job's data is kept by name: give each parameter one, without "
                    "*args and /."
                )
            found = f"@{ast.unparse(bare)}"
            yield self._finding(decorator, found, node.name, advice)
            yield from self._requests(node)

    def _requests(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> Iterator[Finding]:
        """The attributes that a bound task reads of itself."""
        for each in ast.walk(node):
            match each:
                case ast.Attribute(
                    value=ast.Attribute(value=ast.Name(id="self"), attr="request"),
                    attr=name,
                ):
                    advice = [request_advice(name)]
                    yield self._finding(each, f"self.request.{name}", "", advice)

    def _call(self, node: ast.Call) -> Iterator[Finding]:
        match node.func:
            case _ if is_enqueued(node, self._canvas):
                return
            case ast.Name(id=name) if self._names.get(name) == "signature":
                yield self._finding(node, f"{name}()", "", [_advised("signature")])
            case ast.Name(id=name) if self._names.get(name) == "AsyncResult":
                yield self._finding(node, f"{name}()", "", [RESULT])
            case ast.Name(id="on_commit") | ast.Attribute(attr="on_commit"):
                if any(map(enqueues, node.args)):
                    yield self._finding(node, "on_commit()", "", [ON_COMMIT])
            case ast.Attribute(value=owner, attr=name):
                yield from self._method(node, owner, name)

    def _method(self, node: ast.Call, owner: ast.expr, name: str) -> Iterator[Finding]:
        task = last_name(owner)
        if name in CALLS:
            yield self._finding(node, f".{name}()", task, self._enqueue(node, task))
        elif name == "send_task":
            advice = [_send_task(_text(node))]
            advice += [*option_advice(node, "", name), *argument_advice(node, name)]
            yield self._finding(node, ".send_task()", _text(node), advice)
        elif name in OF_TASKS and task in self._tasks:
            yield self._finding(node, f".{name}()", task, [_advised(name, task)])
        elif name == "retry" and task == "self":
            yield self._finding(node, "self.retry()", "", [retry_advice(node)])
        elif name == "update_state" and task == "self":
            text = sentence(IN_HANDLER[name])
            yield self._finding(node, "self.update_state()", "", [text])
        elif name == "connect" and self._names.get(task) in SIGNALS:
            yield self._signal(node, task)
        else:
            yield from self._result(node, owner, name)

    def _enqueue(self, node: ast.Call, task: str) -> Sequence[str]:
        """Advice for a call of this task, or of a group of this name."""
        of_canvas = self._canvas.get(id(self._assigned.get(task)))
        if of_canvas is not None:
            return of_canvas.advice
        name = last_name(node.func)
        advice = [_advised(name, task), *option_advice(node, task, name)]
        return [*advice, *argument_advice(node, name)]

    def _result(self, node: ast.Call, owner: ast.expr, name: str) -> Iterator[Finding]:
        task = last_name(owner)
        if name == "AsyncResult" and (task in self._tasks or is_app(owner)):
            yield self._finding(node, f".{name}()", "", [RESULT])
        elif name in JOB and self._is_result(task):
            yield self._finding(node, f".{name}()", task, [sentence(JOB[name])])
        elif name == "get" and isinstance(owner, ast.Call) and enqueues(owner):
            yield self._finding(node, ".get()", "", [sentence(JOB["get"])])
        elif task == "control" and name in CONTROL:
            advice = [sentence(CONTROL[name])]
            yield self._finding(node, f".control.{name}()", "", advice)
        else:
            yield from self._configuration(node, owner, name)

    def _configuration(
        self, node: ast.Call, owner: ast.expr, name: str
    ) -> Iterator[Finding]:
        """Periodic tasks that are not in a dict of their own."""
        if name == "add_periodic_task":
            advice = ["Write <handler>.at(every(seconds=…))(…), or cron('…')."]
            yield self._finding(node, ".add_periodic_task()", "", advice)
        elif name == "update" and last_name(owner) == "conf":
            for keyword in node.keywords:
                if keyword.arg in BEAT_SETTINGS:
                    yield from self._beat(keyword.value)
                elif keyword.arg is not None:
                    yield from self._setting(keyword.value, keyword.arg, of_app=True)

    def _setting(
        self, node: ast.expr, name: str, *, of_app: bool = False
    ) -> Iterator[Finding]:
        if known := setting_of(name, of_app=of_app):
            yield self._finding(node, name, "", [sentence(SETTINGS[known])])

    def _signal(self, node: ast.expr, name: str) -> Finding:
        ours = SIGNALS[self._names[name]]
        advice = f"Connect to {ours} of django_jobqueue.signals"
        return self._finding(node, f"{name}.connect", "", [sentence(advice)])

    def _attribute(self, node: ast.Attribute) -> Iterator[Finding]:
        """What is not called where it stands."""
        owner = last_name(node.value)
        if node.attr in CALLS and owner in self._tasks:
            advice = [f"Write {owner}.enqueue."]
            yield self._finding(node, f".{node.attr}", owner, advice)
        elif node.attr == "connect" and self._names.get(owner) in SIGNALS:
            yield self._signal(node, owner)

    def _exceptions(self, node: ast.expr, before: str) -> Iterator[Finding]:
        for each in node.elts if isinstance(node, ast.Tuple) else [node]:
            name = last_name(each)
            theirs = self._names.get(name, "")
            if theirs in EXCEPTIONS:
                advice = [sentence(EXCEPTIONS[theirs])]
                yield self._finding(each, f"{before}{name}", "", advice)

    def _is_result(self, name: str) -> bool:
        """True if this variable has what an enqueue of Celery's returns."""
        value = self._assigned.get(name)
        return isinstance(value, ast.Call) and (
            is_enqueued(value, self._canvas)
            or (isinstance(value.func, ast.Attribute) and value.func.attr in CALLS)
        )

    def _assignment(
        self, target: ast.expr, value: ast.expr | None
    ) -> Iterator[Finding]:
        match target:
            case _ if value is None:
                return
            case ast.Subscript(value=owner, slice=key):
                if last_name(owner) in BEAT_SETTINGS:
                    yield from self._beat(ast.Dict([key], [value]))
            case _:
                name = last_name(target)
                if name in BEAT_SETTINGS:
                    yield from self._beat(value)
                else:
                    of_app = "conf" in ast.unparse(target).split(".")
                    yield from self._setting(target, name, of_app=of_app)

    def _beat(self, value: ast.expr) -> Iterator[Finding]:
        for entry in beat_entries(value, self._time_zone):
            yield self._finding(entry.node, "beat_schedule", entry.task, entry.advice)


def _text(node: ast.Call) -> str:
    match node.args:
        case [ast.Constant(value=str(text)), *_]:
            return text
    return ""


def _advised(name: str, handler: str = "") -> str:
    return sentence(HANDLER.get(name, OPTIONS.get(name, "")), handler)
