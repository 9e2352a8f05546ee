"""What the translations say of our side: options, verbs, names, flags and commands.

Their examples are run by ``test_examples``; here is what stands in their tables.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.management import load_command_class
from django.core.management.base import CommandParser

import django_jobqueue
from django_jobqueue import Context, models, operations, signals, testing
from django_jobqueue.conf import Conf
from django_jobqueue.domain.job_options import policy_of
from django_jobqueue.domain.policy import Policy
from django_jobqueue.enqueueing.options import JobOptions
from tests.architecture.source import parsed
from tests.docs.pages import pages

FOLDER = "docs/guides/coming-from/"
AN_ID = "0199a5c0-1111-7000-8000-000000000000"
PLACEHOLDERS = {"…": "...", "<id>": AN_ID, "[id]": "[...]", "(id)": "(...)"}
READER = {"send_receipt", "remind", "timedelta"}  # names of the reader's own


def in_last_columns() -> Iterator[tuple[str, str]]:
    """Each piece of code in the last column of a table, and its page."""
    for page, text in pages().items():
        if page.startswith(FOLDER):
            for row in re.findall(r"^\| (?!---).* \|$", text, re.M):
                last = row.rstrip("| ").rpartition(" | ")[2]
                yield from ((page, code) for code in re.findall(r"`([^`]+)`", last))


SAID = sorted(set(in_last_columns()))


def as_python(code: str) -> ast.Module:
    """The code with its gaps filled; nothing, if it is no Python."""
    for gap, filling in PLACEHOLDERS.items():
        code = code.replace(gap, filling)
    try:
        return parsed(code.removeprefix("@").removeprefix("await "))
    except SyntaxError:
        return parsed("")


def written_out(call: ast.Call) -> dict[str, Any]:
    """The arguments by name of which the value is there."""
    found = {}
    for keyword in call.keywords:
        try:
            value = ast.literal_eval(keyword.value)
        except ValueError:  # a name of the reader's
            continue
        if "Ellipsis" not in repr(value):  # a gap
            found[str(keyword.arg)] = value
    return found


def a_declaration(call: ast.Call, besides: set[str]) -> bool:
    """``@job(…)`` and ``@task(…)`` have these options, with these values."""
    options = {k: v for k, v in written_out(call).items() if k not in besides}
    assert policy_of("here", options)
    return all(hasattr(Policy, name) for name in names_of(call) - besides)


def takes(function: Callable[..., Any], call: ast.Call) -> bool:
    """The function has parameters of these names."""
    return names_of(call) <= set(inspect.signature(function).parameters)


def names_of(call: ast.Call) -> set[str]:
    """The names of the arguments that have one."""
    return {str(keyword.arg) for keyword in call.keywords}


def ours(name: str) -> Callable[..., Any]:
    """What is public under this name."""
    for room in (django_jobqueue, testing, operations, models):
        if hasattr(room, name):
            return getattr(room, name)  # type: ignore[no-any-return]
    raise AssertionError(f"there is no {name}")


def is_ours(node: ast.AST) -> bool:
    """Whether we have what this part of a piece of code names."""
    match node:
        case ast.Call(func=ast.Name(id="job")):
            return a_declaration(node, {"name", "schedule"})
        case ast.Call(func=ast.Name(id="task")):
            return a_declaration(node, {"queue_name"})
        case ast.Call(func=ast.Name(id="using") | ast.Attribute(attr="using")):
            return names_of(node) <= set(JobOptions.__annotations__)
        case ast.Call(func=ast.Name(id=name)) if name not in READER:
            return takes(ours(name), node)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="triage"), attr=name)):
            return takes(getattr(operations, name), node)
        case ast.Attribute(value=ast.Name(id="context"), attr=name):
            return hasattr(Context, name)
        case ast.Assign(targets=[ast.Name(id="JOBQUEUE")], value=value):
            return all(
                Conf.settings[name].problem(setting) is None
                for name, setting in ast.literal_eval(value).items()
            )
    return True


def test_what_a_table_says_that_we_have_is_there() -> None:
    wrong = []
    for page, code in SAID:
        try:
            is_right = all(is_ours(node) for node in ast.walk(as_python(code)))
        except Exception:
            is_right = False
        if re.fullmatch(r"(jobs?|attempt)_\w+", code):
            is_right &= hasattr(signals, code)
        if not is_right:
            wrong.append((page, code))
    assert wrong == []


def command_lines() -> Iterator[str]:
    """Each command of ours that a translation names, and in the lines for cron."""
    for _, code in SAID:
        yield from re.findall(r"^manage\.py ((?:runworkers|jobqueue)\b.*)", code)
    for page, text in pages().items():
        if page.startswith(FOLDER):
            yield from re.findall(r"^\d.*manage\.py (.*)$", text, re.M)


def flags() -> Iterator[str]:
    """Each flag that stands by itself, with or without a value."""
    return (code for _, code in SAID if code.startswith("--"))


def parser_of(name: str) -> CommandParser:
    """The parser of a command of ours."""
    return load_command_class("django_jobqueue", name).create_parser("manage.py", name)


@pytest.mark.dear
def test_commands_that_are_named_are_understood_and_flags_are_those_of_runworkers() -> (
    None
):
    for line in sorted(set(command_lines())):
        name, *words = shlex.split(line.replace("<id>", AN_ID))
        assert parser_of(name).parse_args(words), line
    parser = parser_of("runworkers")
    known = parser.format_help().split()
    for said in sorted(set(flags())):
        flag, *values = said.split()
        assert flag in known
        assert not values or parser.parse_args([flag, *values])


def test_the_tables_name_much_of_what_there_is() -> None:
    codes = {code for _, code in SAID}
    options = {m for code in codes for m in re.findall(r"@job\((\w+)=", code)}
    assert len(codes) > 150
    assert len(options) > 10
    assert len(set(command_lines())) > 15
