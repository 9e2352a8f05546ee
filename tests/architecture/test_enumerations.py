"""Where all members of an enumeration are told apart, none is forgotten."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from django_jobqueue import rooms
from django_jobqueue.stats import attention
from tests.architecture.source import Module, modules

BASES = {"Enum", "StrEnum", "IntEnum", "TextChoices", "IntegerChoices"}

# Tables and matches that leave members out on purpose: where, and of what.
PARTIAL: dict[tuple[str, str], str] = {
    ("admin/work/work_progress.py", "WorkState"): "the style of others is their name",
    ("admin/bulk/bulk_progress.py", "ReplayExpiry"): "a new one is shown as a moment",
    ("contrib/http/verb_routes.py", "On"): "others have no routes yet",
    ("contrib/http/endpoint.py", "On"): "others have no routes yet",
    ("contrib/http/verb_routes.py", "Takes"): "of what their verbs take",
    ("backends/results.py", "ArchivedStatus"): "exceptions where a handler has none",
    ("backends/task_runner.py", "Verb"): "the same",
    ("execution/immediate.py", "Verb"): "those after which no attempt follows",
    ("execution/signal_sender.py", "Verb"): "what is handed over has not ended",
    ("host/child.py", "Step"): "a kill is no order",
    ("logs.py", "Verb"): "others are logged in other ways",
    ("search/selection.py", "ValueType"): "others are compared with their column",
    ("search/values.py", "ValueType"): "others have no fixed values",
    ("store/bulk/skips.py", "SkipReplayed"): "none skips nothing",
    (
        "store/queue/finish_unsuccessful.py",
        "Verb",
    ): "a hand-over has a statement of its own",
    ("workers/completing/counters.py", "Verb"): "what is handed over has not ended",
}


def name_of(node: ast.expr) -> str:
    """The last part of a dotted name."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


@cache
def enumerations() -> dict[str, frozenset[str]]:
    """The members of each enumeration of the package."""
    return {
        node.name: frozenset(
            target.id
            for statement in node.body
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name) and target.id.isupper()
        )
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.ClassDef) and {name_of(b) for b in node.bases} & BASES
    }


def members(nodes: list[ast.expr]) -> tuple[str, set[str]] | None:
    """The enumeration and the members that these are, if they are of one."""
    owners = {name_of(n.value) if isinstance(n, ast.Attribute) else "" for n in nodes}
    if len(owners) != 1 or not owners <= enumerations().keys():
        return None
    return owners.pop(), {n.attr for n in nodes if isinstance(n, ast.Attribute)}


def cases(node: ast.Match) -> list[ast.expr] | None:
    """What the cases compare with; None if one of them takes what is left."""
    values: list[ast.expr] = []
    for case in node.cases:
        if case.guard is not None:
            return None
        for pattern in ast.walk(case.pattern):
            if isinstance(pattern, ast.MatchValue):
                values.append(pattern.value)
            elif not isinstance(pattern, ast.MatchOr | ast.expr | ast.expr_context):
                return None
    return values


def told_apart(module: Module) -> Iterator[tuple[int, str, set[str]]]:
    """The line, the enumeration and the members of each table and match."""
    for node in module.nodes:
        nodes: list[ast.expr] | None = None
        if isinstance(node, ast.Dict) and len(node.keys) > 1:
            nodes = [key for key in node.keys if key is not None]
        elif isinstance(node, ast.Match):
            nodes = cases(node)
        found = members(nodes) if nodes else None
        if found is not None:
            yield node.lineno, *found


@cache
def forgotten() -> dict[tuple[str, str], tuple[int, set[str]]]:
    """The members that are missing, by file and enumeration."""
    return {
        (module.path, name): (line, set(missing))
        for module in modules()
        for line, name, present in told_apart(module)
        if (missing := enumerations()[name] - present)
    }


def test_there_are_enumerations_and_places() -> None:
    assert {"BulkKind", "Verb", "Delivery"} <= enumerations().keys()
    assert sum(1 for module in modules() for _ in told_apart(module)) > 20


def test_no_member_is_forgotten() -> None:
    """In tables whose keys are members, and in matches without a default. And none is
    left out by a reason in vain."""
    problems = [
        f"django_jobqueue/{path}:{line}: add {name}.{' and '.join(sorted(missing))}, "
        f"or explain it in PARTIAL of tests/architecture/test_enumerations.py"
        for (path, name), (line, missing) in forgotten().items()
        if (path, name) not in PARTIAL
    ]
    assert not problems, "\n".join(problems)
    assert PARTIAL.keys() <= forgotten().keys()


def codes_used() -> set[str]:
    """The codes of the notices and concerns that the source makes."""
    return {
        node.args[0].value
        for module in modules()
        if module.path.startswith("stats/")
        for node in module.nodes
        if isinstance(node, ast.Call) and name_of(node.func) in ("Concern", "Notice")
        if node.args and isinstance(node.args[0], ast.Constant)
    }


def test_each_concern_of_the_overview_has_a_rank() -> None:
    assert len(codes_used()) > 10
    assert codes_used() <= set(attention.CODES)


OWN = {"django_jobqueue.apps", "django_jobqueue.checks"}  # which all others load


def test_each_file_of_checks_is_loaded() -> None:
    named = {path for room in rooms.rooms() for path in room.checks}
    registers = {
        f"django_jobqueue/{module.path}".removesuffix(".py").replace("/", ".")
        for module in modules()
        if any(
            isinstance(node, ast.ImportFrom)
            and node.module == "django_jobqueue.checks.lazy_loading"
            for node in module.nodes
        )
    }
    assert {name.removesuffix(".__init__") for name in registers} - OWN == named
