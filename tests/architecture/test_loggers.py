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
        for called, node in module.calls:
            if called.endswith("getLogger"):
                argument = ast.unparse(node.args[0]) if node.args else ""
                yield f"{module.path}:{node.lineno}", argument.strip("'\"")


def documented() -> list[str]:
    """The loggers in the table of the guide."""
    table = pages()[PAGE].partition("| logger | level |")[2].partition("\n\n")[0]
    return re.findall(r"^\| `([\w.]+)` \|", table, re.M)


def test_the_guide_lists_each_logger_once_and_no_other() -> None:
    names = documented()
    assert len(names) > 5
    assert sorted(set(names)) == sorted(names)
    used = {name: place for place, name in loggers()}
    others = used.keys() - {PACKAGE, *names}
    assert not others, f"use a logger in the table of {PAGE}, or add a row to it"
    assert set(names) <= used.keys(), f"remove rows from the table of {PAGE}"
