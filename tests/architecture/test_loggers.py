"""Loggers have fixed names, which the guide to deploying lists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.source import modules
from tests.docs.pages import pages

PAGE = "docs/guides/deploying.md"
PACKAGE = "django_jobqueue"  # the parent of all, which projects configure


def loggers() -> Iterator[tuple[str, str]]:
    """The place and the argument of each call of ``getLogger``."""
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
                "getLogger"
            ):
                argument = ast.unparse(node.args[0]) if node.args else ""
                yield f"{module.path}:{node.lineno}", argument.strip("'\"")


def documented() -> list[str]:
    """The loggers in the table of the guide."""
    table = pages()[PAGE].partition("| logger | level |")[2].partition("\n\n")[0]
    return re.findall(r"^\| `([\w.]+)` \|", table, re.M)


def test_each_logger_has_a_name_of_the_guide() -> None:
    names = {PACKAGE, *documented()}
    others = [f"{place}: {name}" for place, name in loggers() if name not in names]
    assert others == [], f"use a logger in the table of {PAGE}, or add a row to it"


def test_each_logger_of_the_guide_is_used() -> None:
    assert len(documented()) > 5
    unused = set(documented()) - {name for _place, name in loggers()}
    assert unused == set(), f"remove its rows from the table of {PAGE}"


def test_the_guide_lists_each_logger_once() -> None:
    assert sorted(set(documented())) == sorted(documented())
