"""Sizes, as a ratchet: what is too large today may only shrink."""

from __future__ import annotations

import ast

from tests.architecture.source import functions, lines, modules

FILE, FUNCTION, CLASS = 400, 40, 200

# Too large today. A size may only go down; an entry that is not needed is an error.
FILES: dict[str, int] = {}
FUNCTIONS: dict[str, int] = {}
CLASSES: dict[str, int] = {
    "worker/dispatcher.py Dispatcher": 210,
    "worker/supervisor.py Supervisor": 287,
}


def check(sizes: dict[str, int], limit: int, known: dict[str, int]) -> None:
    """Nothing new is too large, nothing known has grown, nothing is known in vain."""
    too_large = {name: size for name, size in sizes.items() if size > limit}
    new = {name: size for name, size in too_large.items() if name not in known}
    assert new == {}, f"more than {limit} lines"
    grown = {n: (known[n], size) for n, size in too_large.items() if size > known[n]}
    assert grown == {}, "grown since it was noted"
    assert sorted(known.keys() - too_large.keys()) == [], "no longer too large"


def test_no_file_has_more_than_400_lines() -> None:
    sizes = {m.path: len(m.text.splitlines()) for m in modules()}
    check(sizes, FILE, FILES)


def test_no_function_has_more_than_40_lines() -> None:
    sizes: dict[str, int] = {}
    for module in modules():
        for function in functions(module.tree):
            name = f"{module.path} {function.name}"
            sizes[name] = max(lines(function), sizes.get(name, 0))
    check(sizes, FUNCTION, FUNCTIONS)


def test_no_class_has_more_than_200_lines() -> None:
    sizes = {
        f"{module.path} {node.name}": lines(node)
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    }
    check(sizes, CLASS, CLASSES)


def test_nine_functions_of_ten_have_20_lines_at_most() -> None:
    sizes = sorted(lines(f) for module in modules() for f in functions(module.tree))
    assert sizes[len(sizes) * 9 // 10] <= 20
