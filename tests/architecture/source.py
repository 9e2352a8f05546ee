"""The source of the package, parsed once, for the tests of its shape."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import django_jobqueue

PACKAGE = Path(django_jobqueue.__file__).parent
ROOT = PACKAGE.parent


@dataclass(frozen=True, eq=False)
class Module:
    """A file of the package."""

    path: str  # from the package on, as in store/insert.py
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return parsed(self.text)

    @property
    def name(self) -> str:
        """Its dotted name: django_jobqueue.store.queue.insert."""
        parts = Path(self.path).with_suffix("").parts
        kept = parts[:-1] if parts[-1] == "__init__" else parts
        return ".".join((PACKAGE.name, *kept))

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of its syntax tree: to walk all trees takes a second."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def functions(self) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
        """Every function and method, at any depth."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        return tuple(node for node in self.nodes if isinstance(node, kinds))

    @cached_property
    def classes(self) -> tuple[ast.ClassDef, ...]:
        """Every class, at any depth."""
        return tuple(node for node in self.nodes if isinstance(node, ast.ClassDef))

    @cached_property
    def calls(self) -> tuple[tuple[str, ast.Call], ...]:
        """Every call, with what is called as it is written."""
        found = (node for node in self.nodes if isinstance(node, ast.Call))
        return tuple((written(node.func), node) for node in found)

    @cached_property
    def imports(self) -> tuple[str, ...]:
        """The dotted names of what is imported, at any depth, but for types alone."""
        return tuple(imports(self.tree))

    @cached_property
    def texts(self) -> tuple[tuple[str, int], ...]:
        """Every string constant and its line; what varies in an f-string reads {}."""
        return tuple(texts(self.tree))

    def is_in(self, *places: str) -> bool:
        """Whether it is one of these files, or below one of these folders."""
        return self.path.startswith(tuple(p for p in places if p.endswith("/"))) or (
            self.path in places
        )


@cache
def modules() -> tuple[Module, ...]:
    """Every file of the package but for the migrations."""
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        path = file.relative_to(PACKAGE).as_posix()
        if "migrations/" not in path:
            found.append(Module(path, file.read_text()))
    return tuple(found)


def parsed(text: str) -> ast.Module:
    """The syntax tree; nothing is collected meanwhile.

    Python 3.11 counts the depth of all trees that are being made in one number
    (CPython's issue 106905). A finalizer that logs a traceback parses, and so
    the tree around it would fail.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if was_enabled:
            gc.enable()


def imports(node: ast.AST) -> Iterator[str]:
    """The dotted names of what is imported, at any depth, but for types alone."""
    for part in walk_at_runtime(node):
        if isinstance(part, ast.Import):
            yield from (alias.name for alias in part.names)
        elif isinstance(part, ast.ImportFrom) and part.module:
            yield part.module
            yield from (f"{part.module}.{alias.name}" for alias in part.names)


def walk_at_runtime(node: ast.AST) -> Iterator[ast.AST]:
    """Every node, but for those under ``if TYPE_CHECKING``."""
    waiting = [node]
    while waiting:
        yield (each := waiting.pop())
        waiting += [
            child
            for child in ast.iter_child_nodes(each)
            if not (
                isinstance(child, ast.If) and "TYPE_CHECKING" in written(child.test)
            )
        ]


def written(node: ast.expr) -> str:
    """The expression as text; names are most, and unparsing takes its time."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{written(value)}.{name}"
    return ast.unparse(node)


def lines(node: ast.stmt) -> int:
    """How many lines a definition has, without its decorators."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def texts(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Every string constant and its line; what varies in an f-string reads {}."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.JoinedStr):
            values = each.values
            parts = [v.value if isinstance(v, ast.Constant) else "{}" for v in values]
            yield "".join(map(str, parts)), each.lineno
        elif isinstance(each, ast.Constant):
            if isinstance(each.value, str):
                yield each.value, each.lineno
        else:
            waiting += ast.iter_child_nodes(each)
