"""Tests ask public names: a private one of another module needs a reason beside it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import ROOT

REASON = "# private: "
# Private by their looks only: Django, os and named tuples document them.
DOCUMENTED = {
    "_asdict",
    "_base_manager",
    "_default_manager",
    "_exit",
    "_field_defaults",
    "_fields",
    "_meta",
    "_replace",
    "_state",
}


def is_private(name: object) -> bool:
    """Whether it begins with one underscore."""
    return isinstance(name, str) and name[:1] == "_" != name[1:2] and len(name) > 1


def own(tree: ast.Module) -> set[str]:
    """The private names that this module itself defines."""
    names = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.AsyncFunctionDef(name=name) | ast.arg(arg=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                names.add(name)
    return names


def foreign(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and name of each private name of another module that is read."""
    mine = own(tree) | DOCUMENTED
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) if is_private(name) and name not in mine:
                yield node.lineno, name
            case ast.ImportFrom(names=aliases):
                yield from (
                    (node.lineno, a.name) for a in aliases if is_private(a.name)
                )
            case ast.Call(
                func=ast.Attribute(attr="setattr" | "delattr"),
                args=[_, ast.Constant(value=name), *_],
            ) if is_private(name) and name not in mine:
                yield node.lineno, str(name)


READ = re.compile(r"(?:\._|\bimport .*\b_|^    _|[\"'(]_)([a-zA-Z]\w*)", re.M)
MADE = re.compile(
    r"^ *(?:(?:async )?def |class |self\.)_([a-zA-Z]\w*)(?=\(|:| =)", re.M
)


def may_read(text: str) -> bool:
    """Whether to parse it: whether there are more such names than it seems to make."""
    made = {name.removeprefix("_") for name in DOCUMENTED} | {*MADE.findall(text)}
    return not made.issuperset(READ.findall(text))


def unreasoned(path: Path) -> list[str]:
    """The reads of a file that have no reason in their line or the one above."""
    text = path.read_text()
    if not may_read(text):
        return []
    lines = ["", *text.splitlines()]
    return [
        f"{path.relative_to(ROOT)}:{number} {name}"
        for number, name in foreign(ast.parse(text))
        if REASON not in lines[number] and REASON not in lines[number - 1]
    ]


@pytest.mark.dear
def test_a_private_name_of_another_module_is_read_for_a_reason() -> None:
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert len(files) > 100
    assert [read for path in files for read in unreasoned(path)] == []


def test_a_read_without_a_reason_is_found(tmp_path: Path) -> None:
    source = (
        "import a\nfrom b import _c\n\n\ndef f(self, patch):\n"
        "    self._mine = a._theirs\n"
        "    # private: nothing else shows it\n    a._shown\n"
        '    patch.setattr(a, "_patched", self._mine)\n    a._meta.model\n'
    )
    assert may_read(source)
    found = [name for _, name in foreign(ast.parse(source))]
    assert sorted(found) == ["_c", "_patched", "_shown", "_theirs"]
