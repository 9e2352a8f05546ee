"""Finds Celery in source code, without importing it, and says what to write instead."""

from __future__ import annotations

import ast
import os
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from django_jobqueue.importing.celery_beat_code import beat_entries
from django_jobqueue.text.foreign_words import HANDLER, IN_HANDLER, JOB, OPTIONS

SKIPPED: Final = {"__pycache__", "node_modules", "site-packages"}
BEAT_SETTINGS: Final = {
    "beat_schedule",
    "CELERY_BEAT_SCHEDULE",
    "CELERYBEAT_SCHEDULE",
}

# Options of tasks and calls that foreign_words does not have, or not in a sentence that
# fits here.
ADVICE: Final = {
    **OPTIONS,
    "args": "Give the arguments to enqueue itself",
    "add_to_parent": "Leave it out: there is no tree of jobs",
    "compression": "Leave it out: PostgreSQL compresses large data",
    "exchange": "Leave it out: there is no broker",
    "max_retries": f"{OPTIONS['max_retries']}; None is unlimited in both",
    "name": "Write @job(name=…); by default it is the path without .jobs",
    "priority": "From -100 to 100, and greater is sooner",
    "producer": "Leave it out: there is no broker",
    "queue": "The same: queue=…",
    "result_extended": "Leave it out: the archive has the data",
    "send_events": "Leave it out: the admin shows each attempt",
    "shadow": "Leave it out, or write using(tags=[…])",
    "store_errors_even_if_ignored": "Leave it out: failures are always kept",
    "typing": "Leave it out: arguments are always checked",
    "trail": "Leave it out: there is no tree of jobs",
}
RESULT: Final = (
    "Write get_job(id); wait(id, timeout=10).result waits for what the job returns."
)
CALLS: Final = ("delay", "apply_async", "delay_on_commit", "apply_async_on_commit")
# Methods that other objects have too, looked for on known tasks only.
OF_TASKS: Final = ("apply", "chunks", "map", "s", "si", "signature", "starmap")
CANVAS: Final = {
    "chain": "Write <handler>.using(on_success=<the next>)",
    "chord": "Write the recipe 'Fan in' of the cookbook",
    "chunks": "Write <handler>.enqueue_many([{…}, {…}])",
    "group": "Write <handler>.enqueue_many([{…}, {…}])",
}
RATE: Final = re.compile(r"(?P<number>[1-9]\d*)(/(?P<per>[smh]))?$")
SECONDS: Final = {"s": 1, "m": 60, "h": 3_600}
DECLARATIONS: Final = ("shared_task", "task", "periodic_task")
RETRIED: Final = {"autoretry_for", "max_retries", None}  # None: ``**options``
NOT_RETRIED: Final = (
    "It is not retried in Celery: write @job(max_attempts=1), or let failures be tried "
    "again."
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
    sources = {str(one): _parsed(one) for one in _files(path)}
    trees = {name: t for name, t in sources.items() if isinstance(t, ast.Module)}
    tasks = {name for tree in trees.values() for name in _declared(tree)}
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
        findings += _Scan(name, _celery_names(tree), tasks).findings(tree)
    return sorted(findings)


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in SKIPPED
            and not Path(folder, name, "pyvenv.cfg").exists()
        )
        yield from (Path(folder, one) for one in sorted(files) if one.endswith(".py"))


def _parsed(path: Path) -> ast.Module | Exception:
    try:
        with tokenize.open(path) as file:  # in the encoding that it declares
            source = file.read()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about that code
            return ast.parse(source, path.name)
    except (SyntaxError, ValueError, OSError, RecursionError) as error:
        return error


def _celery_names(tree: ast.Module) -> dict[str, str]:
    """What Celery's names are called in this module."""
    return {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").partition(".")[0] == "celery"
        for alias in node.names
    }


def _declared(tree: ast.Module) -> Iterator[str]:
    names = _celery_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = map(_without_call, node.decorator_list)
            if any(_is_declaration(each, names) for each in decorators):
                yield node.name


def _without_call(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _is_declaration(node: ast.expr, names: dict[str, str]) -> bool:
    match node:
        case ast.Name(id=name):
            return names.get(name) in DECLARATIONS
        case ast.Attribute(value=ast.Name(id="celery"), attr="shared_task"):
            return True
        case ast.Attribute(value=owner, attr="task" | "periodic_task"):
            return _is_app(owner)
    return False


def _is_app(node: ast.expr) -> bool:
    """Whether this is called like an application of Celery's."""
    if isinstance(node, ast.Name) and "app" in node.id.lower():
        return True
    return "celery" in ast.unparse(node).lower()


def _enqueues(node: ast.expr) -> bool:
    """Whether a task is enqueued somewhere in this."""
    return any(
        isinstance(each, ast.Attribute) and each.attr in CALLS
        for each in ast.walk(node)
    )


def _calls_retry(node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Attribute) and each.attr == "retry"
        for each in ast.walk(node)
    )


def _send_task(name: str) -> str:
    """By the name of the job type that stands for this task."""
    app, _, function = name.rpartition(".")
    ours = f"{app.removesuffix('.tasks')}.{function}" if app else "app.function"
    return f"Write enqueue({ours!r}, {{…}}) of django_jobqueue."


def _last_name(node: ast.expr) -> str:
    """``send`` of ``shop.tasks.send``."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _sentence(text: str, handler: str = "") -> str:
    return f"{text}.".replace("<handler>", handler or "handler")


class _Scan:
    """One file."""

    def __init__(self, path: str, names: dict[str, str], tasks: set[str]) -> None:
        self._path = path
        self._names = names
        self._tasks = tasks

    def findings(self, tree: ast.Module) -> Iterator[Finding]:
        """All that there is in it."""
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    yield from self._declarations(node)
                case ast.ClassDef(bases=bases) if any(map(self._is_task, bases)):
                    advice = "There are no classes; write a function with @job"
                    yield self._finding(node, "Task", node.name, [_sentence(advice)])
                case ast.Call():
                    yield from self._call(node)
                case ast.BinOp(op=ast.BitOr()) if self._is_signature(node.right):
                    yield self._canvas(node, "chain", "|")
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
            bare = _without_call(decorator)
            if not _is_declaration(bare, self._names):
                continue
            advice = ["Write @job, in jobs.py."]
            given = set()
            if isinstance(decorator, ast.Call):
                advice += _options(decorator, node.name)
                given = {keyword.arg for keyword in decorator.keywords}
            if not given & RETRIED and not _calls_retry(node):
                advice.append(NOT_RETRIED)
            parameters = node.args
            if parameters.vararg or parameters.posonlyargs:
                advice.append(
                    "A job's data is kept by name: give each parameter one, without "
                    "*args and /."
                )
            found = f"@{ast.unparse(bare)}"
            yield self._finding(decorator, found, node.name, advice)

    def _call(self, node: ast.Call) -> Iterator[Finding]:
        match node.func:
            case ast.Name(id=name) if self._names.get(name) in CANVAS:
                yield self._canvas(node, self._names[name], f"{name}()")
            case ast.Name(id=name) if self._names.get(name) == "signature":
                yield self._finding(node, f"{name}()", "", [_advised("signature")])
            case ast.Name(id=name) if self._names.get(name) == "AsyncResult":
                yield self._finding(node, f"{name}()", "", [RESULT])
            case ast.Name(id="on_commit") | ast.Attribute(attr="on_commit"):
                if any(map(_enqueues, node.args)):
                    yield self._finding(node, "on_commit()", "", [ON_COMMIT])
            case ast.Attribute(value=ast.Name(id="celery"), attr=name) if (
                name in CANVAS
            ):
                yield self._canvas(node, name, f"celery.{name}()")
            case ast.Attribute(value=owner, attr=name):
                yield from self._method(node, owner, name)

    def _method(self, node: ast.Call, owner: ast.expr, name: str) -> Iterator[Finding]:
        task = _last_name(owner)
        if name in CALLS:
            advice = [_advised(name, task), *_options(node, task, name)]
            yield self._finding(node, f".{name}()", task, advice)
        elif name in OF_TASKS and task in self._tasks:
            yield self._finding(node, f".{name}()", task, [_advised(name, task)])
        elif name == "AsyncResult" and (task in self._tasks or _is_app(owner)):
            yield self._finding(node, f".{name}()", "", [RESULT])
        elif name == "get" and isinstance(owner, ast.Call) and _enqueues(owner):
            yield self._finding(node, ".get()", "", [_sentence(JOB["get"])])
        elif name == "send_task":
            advice = [_send_task(_text(node))]
            advice += _options(node, "", name)
            yield self._finding(node, ".send_task()", _text(node), advice)
        elif name in ("retry", "update_state") and task == "self":
            text = _sentence(IN_HANDLER[name])
            yield self._finding(node, f"self.{name}()", "", [text])
        else:
            yield from self._configuration(node, owner, name)

    def _configuration(
        self, node: ast.Call, owner: ast.expr, name: str
    ) -> Iterator[Finding]:
        """Periodic tasks that are not in a dict of their own."""
        if name == "add_periodic_task":
            advice = ["Write <handler>.at(every(seconds=…))(…), or cron('…')."]
            yield self._finding(node, ".add_periodic_task()", "", advice)
        elif name == "update" and _last_name(owner) == "conf":
            for keyword in node.keywords:
                if keyword.arg in BEAT_SETTINGS:
                    yield from self._beat(keyword.value)

    def _assignment(
        self, target: ast.expr, value: ast.expr | None
    ) -> Iterator[Finding]:
        match target:
            case _ if value is None:
                return
            case ast.Subscript(value=owner, slice=key):
                if _last_name(owner) in BEAT_SETTINGS:
                    yield from self._beat(ast.Dict([key], [value]))
            case _:
                if _last_name(target) in BEAT_SETTINGS:
                    yield from self._beat(value)

    def _is_signature(self, node: ast.expr) -> bool:
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="s" | "si")):
                return _last_name(owner) in self._tasks
        return False

    def _canvas(self, node: ast.expr, sort: str, found: str) -> Finding:
        return self._finding(node, found, "", [_sentence(CANVAS[sort])])

    def _beat(self, value: ast.expr) -> Iterator[Finding]:
        for entry in beat_entries(value):
            yield self._finding(entry.node, "beat_schedule", entry.task, entry.advice)


def _text(node: ast.Call) -> str:
    match node.args:
        case [ast.Constant(value=str(text)), *_]:
            return text
    return ""


def _advised(name: str, handler: str = "") -> str:
    return _sentence(HANDLER.get(name, OPTIONS.get(name, "")), handler)


def _options(call: ast.Call, handler: str, method: str = "") -> Iterator[str]:
    """What to write for each option of a declaration or a call."""
    if method.startswith("delay"):
        return  # its keywords are arguments of the task
    for keyword in call.keywords:
        if keyword.arg is None:
            yield "Look through the options in ** by hand."
            continue
        text = _option(keyword.arg, keyword.value)
        yield f"{keyword.arg}: {_sentence(text, handler)}"


def _option(name: str, value: ast.expr) -> str:
    match name, value:
        case "max_retries", ast.Constant(value=int(retries)):
            return f"Write max_attempts={retries + 1}: it counts the first attempt, too"
        case "max_retries", ast.Constant(value=None):
            return "Write max_attempts=None"
        case "rate_limit", ast.Constant(value=str(text)) if found := RATE.match(text):
            number, per = found["number"], SECONDS[found["per"] or "s"]
            return f"Write rate=Rate({number}, per={per}), for the whole cluster"
    return ADVICE.get(name, "Leave it out: it means nothing here, or is your own")
