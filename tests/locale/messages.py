"""What the package says to people: every message of its code and its templates."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from django.utils.translation.template import templatize

from tests.architecture.source import PACKAGE, parsed

Message = tuple[str, ...]  # singular; and plural, if there is one

CALLS = {
    "gettext": 1,
    "gettext_lazy": 1,
    "gettext_noop": 1,
    "ngettext": 2,
    "ngettext_lazy": 2,
    "pgettext": 2,
    "pgettext_lazy": 2,
    "npgettext": 3,
    "npgettext_lazy": 3,
}
CONTEXT = "\x04"  # between a context and its message, as catalogues write it
IN_TEMPLATE = re.compile(
    r"""\b(n?p?gettext)\(
        ((?:\s*,?\s*u?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))+)""",
    re.VERBOSE,
)


@cache
def messages() -> dict[Message, str]:
    """Every message, with a file that says it."""
    files = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.html")]
    return {
        message: file.relative_to(PACKAGE).as_posix()
        for file in sorted(files)
        for message in (_of_code if file.suffix == ".py" else _of_template)(file)
    }


def _of_code(file: Path) -> Iterator[Message]:
    text = file.read_text()
    if "gettext" not in text:
        return
    tree = parsed(text)
    names = {
        alias.asname or alias.name: alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        and node.module == "django.utils.translation"
        for alias in node.names
        if alias.name in CALLS
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        function = names.get(node.func.id)
        if function:
            texts = [ast.literal_eval(arg) for arg in node.args[: CALLS[function]]]
            yield _message(function, texts)


def _of_template(file: Path) -> Iterator[Message]:
    for function, arguments in IN_TEMPLATE.findall(templatize(file.read_text())):
        texts = ast.literal_eval(f"[{arguments}]")
        yield _message(function, texts)


def _message(function: str, texts: list[str]) -> Message:
    if "pgettext" not in function:
        return tuple(texts)
    context, *texts = texts
    return (f"{context}{CONTEXT}{texts[0]}", *texts[1:])
