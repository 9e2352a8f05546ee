"""Source code that uses Celery: its files, and what they call Celery's things."""

from __future__ import annotations

import ast
import os
import tokenize
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from django_jobqueue.contrib.importing.celery_canvas import CALLS

SKIPPED: Final = {"__pycache__", "node_modules", "site-packages"}
DECLARATIONS: Final = ("shared_task", "task", "periodic_task")


def python_files(path: Path) -> Iterator[Path]:
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


def parsed_file(path: Path) -> ast.Module | Exception:
    try:
        with tokenize.open(path) as file:  # in the encoding that it declares
            source = file.read()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about that code
            return ast.parse(source, path.name)
    except (SyntaxError, ValueError, OSError, RecursionError) as error:
        return error


def celery_names(tree: ast.Module) -> dict[str, str]:
    """The names of Celery's objects in this module."""
    return {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").partition(".")[0] == "celery"
        for alias in node.names
    }


def declared(tree: ast.Module) -> Iterator[str]:
    names = celery_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = map(without_call, node.decorator_list)
            if any(is_declaration(each, names) for each in decorators):
                yield node.name


def without_call(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def is_declaration(node: ast.expr, names: dict[str, str]) -> bool:
    match node:
        case ast.Name(id=name):
            return names.get(name) in DECLARATIONS
        case ast.Attribute(value=ast.Name(id="celery"), attr="shared_task"):
            return True
        case ast.Attribute(value=owner, attr="task" | "periodic_task"):
            return is_app(owner)
    return False


def is_app(node: ast.expr) -> bool:
    """True if this is called like an application of Celery's."""
    if isinstance(node, ast.Name) and "app" in node.id.lower():
        return True
    return "celery" in ast.unparse(node).lower()


def enqueues(node: ast.expr) -> bool:
    """True if a task is enqueued somewhere in this."""
    return any(
        isinstance(each, ast.Attribute) and each.attr in CALLS
        for each in ast.walk(node)
    )


def calls_retry(node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Attribute) and each.attr == "retry"
        for each in ast.walk(node)
    )


def base_of(node: ast.expr) -> str:
    """The class that a declaration names; empty if it names none."""
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg == "base":
                return ast.unparse(keyword.value)
    return ""


def time_zone_of(tree: ast.Module) -> str | None:
    """That of Celery, if the module sets it; None if it does not."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[target], value=ast.Constant(value=str(name))) if (
                ast.unparse(target).endswith(("CELERY_TIMEZONE", "conf.timezone"))
            ):
                return name
            case ast.keyword(arg="timezone", value=ast.Constant(value=str(name))):
                return name
    return None
