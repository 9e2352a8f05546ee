"""Celery's chains, groups and chords in source code, each as one thing."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from django_jobqueue.contrib.importing.celery_options import sentence

CANVAS: Final = {
    "chain": "Write <handler>.using(on_success=<the next>)",
    "chord": "Write the recipe 'Fan in' of the cookbook",
    "chunks": "Write <handler>.enqueue_many([{…}, {…}])",
    "group": "Write <handler>.enqueue_many([{…}, {…}])",
}
SIGNATURES: Final = ("s", "si", "signature", "subtask")
CALLS: Final = ("delay", "apply_async", "delay_on_commit", "apply_async_on_commit")


class Signature(NamedTuple):
    """``send.s(7)``."""

    handler: str
    arguments: str
    is_immutable: bool


class Canvas(NamedTuple):
    """An expression that lets several tasks run, and what stands for it here."""

    node: ast.expr
    sort: str  # a key of CANVAS
    name: str  # how it is called there
    advice: tuple[str, ...]


def canvases(
    tree: ast.Module, names: Mapping[str, str], tasks: Collection[str]
) -> Iterator[Canvas]:
    """The outermost ones of a module. ``names``: Celery's, as they are called there."""
    inside: set[int] = set()
    for node in ast.walk(tree):  # from the outside in
        if id(node) in inside or not isinstance(node, ast.expr):
            continue
        sort, name = _sort(node, names, tasks)
        if sort:
            inside.update(map(id, ast.walk(node)))
            advice = tuple(_advice(node, sort, tasks))
            yield Canvas(node, sort, name, advice)


def _sort(
    node: ast.expr, names: Mapping[str, str], tasks: Collection[str]
) -> tuple[str, str]:
    match node:
        case ast.Call(func=ast.Name(id=name)) if names.get(name) in CANVAS:
            return names[name], f"{name}()"
        case ast.Call(func=ast.Attribute(value=ast.Name(id="celery"), attr=name)) if (
            name in CANVAS
        ):
            return name, f"celery.{name}()"
        case ast.BinOp(op=ast.BitOr(), right=right):
            if _signature(right, tasks) or _sort(right, names, tasks)[0]:
                return "chain", "|"
    return "", ""


def _signature(node: ast.expr, tasks: Collection[str]) -> Signature | None:
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=attr)) if (
            attr in SIGNATURES and last_name(owner) in tasks
        ):
            given = [ast.unparse(each) for each in [*node.args, *node.keywords]]
            return Signature(last_name(owner), ", ".join(given), attr == "si")
    return None


def _advice(node: ast.expr, sort: str, tasks: Collection[str]) -> Iterator[str]:
    parts = list(_parts(node))
    signatures = [_signature(part, tasks) for part in parts]
    steps = [one for one in signatures if one is not None]
    if sort == "chain" and len(steps) == len(parts) > 1:
        yield from _written_out(steps)
        return
    handlers = {one.handler for one in _signatures_within(node, tasks)}
    handler = handlers.pop() if sort == "group" and len(handlers) == 1 else ""
    yield sentence(CANVAS[sort], handler)


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """The steps of a chain, in order."""
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from _operands(left)
            yield from _operands(right)
        case ast.Call(args=[ast.List(elts=inner) | ast.Tuple(elts=inner)]):
            yield from inner
        case ast.Call():
            yield from node.args


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    return _parts(node) if isinstance(node, ast.BinOp) else iter([node])


def _signatures_within(node: ast.expr, tasks: Collection[str]) -> Iterator[Signature]:
    for each in ast.walk(node):
        if isinstance(each, ast.expr) and (one := _signature(each, tasks)):
            yield one


def _written_out(steps: list[Signature]) -> Iterator[str]:
    first, *others = steps
    text = ""
    for step in reversed(others):
        inner = f".using(on_success={text})" if text else ""
        text = f"{step.handler}{inner}"
    yield f"Write {first.handler}.using(on_success={text}).enqueue({first.arguments})."
    names = ", ".join(
        f"{one.handler}({one.arguments})" for one in others if one.arguments
    )
    yield "Each gets what the one before it returned as its parameter result."
    if names:
        yield (
            f"The arguments of {names} are given by nobody: let the handler before it "
            "return them, or read them by get_job(job)."
        )


def is_enqueued(node: ast.Call, canvas: Mapping[int, Canvas]) -> bool:
    """True if this enqueues a canvas that stands in the same expression."""
    match node.func:
        case ast.Call() | ast.BinOp() as owner if id(owner) in canvas:
            return True
        case ast.Attribute(value=owner, attr=attr) if id(owner) in canvas:
            return attr in CALLS
    return False


def last_name(node: ast.expr) -> str:
    """``send`` of ``shop.tasks.send``."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""
