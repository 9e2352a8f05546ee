"""The words of the glossary, and none of those that it replaces."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache

import pytest

from tests.architecture.source import Module, modules

# "Not used, and what to say instead" in the architecture page.
FORBIDDEN = {
    "task": "job",
    "message": "data",
    "payload": "data",
    "dequeue": "claim",
    "fetch": "claim",
    "ack": "finish",
    "nack": "retry",
    "zombie": "lapsed",
    "orphan": "lapsed",
    "stuck": "lapsed",
    "dead letter": "archived failed",
    "visibility timeout": "lease",
    "manager": "name the noun",
    "service": "name the noun",
    "utils": "name the noun",
    "util": "name the noun",
    "common": "name the noun",
    "helpers": "name the noun",
    "helper": "name the noun",
}

# Words of a former private dialect, and the field's word for each.
DIALECT = {
    "answerer": "stack dump",
    "awaiting": "waiting",
    "bell": "wakeup pipe",
    "careful": "exclusive",
    "dress": "annotate",
    "family": "children",
    "glance": "probe",
    "guess": "suggestion",
    "hopeless": "unresponsive",
    "hung": "unresponsive",
    "hygiene": "connection reset",
    "inquiry": "stack request",
    "keeper": "maintenance process",
    "lookout": "lane scanner",
    "outlook": "bulk preview",
    "pace": "runtime estimate",
    "polite": "handler requested",
    "prospect": "next deadlines",
    "roster": "process table",
    "seat": "process entry",
    "settled": "committed",
    "bury": "recover",
    "eased": "extended",
    "seated": "entry",
    "stir": "activity",
    "tally": "counters",
    "triage": "operations",
}
# In these rooms also the words that each meant several things. The beginning of a path.
ENGINE = (
    *("domain/", "embedded/", "execution/", "host/", "middleware/", "models/"),
    *("operations/", "processes/", "search/"),
    *("stats/", "store/", "testing/", "workers/"),
    *("exceptions.py", "logs.py", "progress.py", "retries.py", "signals.py"),
    "waiting.py",
)
MANY_MEANINGS = {
    "anew": "again",
    "calm": "idle",
    "chore": "maintenance task",
    "tell": "announce, notify, wake, send",
    "told": "report, content",
    "trouble": "error, failures",
}
# Words that say that somebody has a thing, or looks at it, instead of what it is.
VAGUE = {
    "ahead": "prefetched, before, or name the seconds",
    "found": "row, jobs, match, or name the noun",
    "kept": "stored, remaining, or name the noun",
    "kind": "type, status, operation",
    "look": "scan, check, probe, read",
    "looked": "scanned, checked, examined",
    "rest": "pause, wait, remainder, others",
    "said": "reported, declared, values, text",
    "say": "report, log, publish, print",
}

# The same words where they are somebody else's, or mean another thing. The place is the
# beginning of a path.
ALLOWED: dict[tuple[str, str], str] = {
    ("found", "exceptions.py"): "JobNotFound, as every library calls it",
    (
        "found",
        "contrib/importing/celery_scan.py",
    ): "a key of the JSON that --scan prints",
    ("kind", "domain/states.py"): "of a bulk operation, as its column is called",
    ("kind", "models/bulk_operation.py"): "that column",
    ("kind", "contrib/http/schemas.py"): "the same in a body",
    ("kind", "operations/bulk.py"): "that column's values, as callers give them",
    ("kind", "store/bulk/"): "that column",
    ("family", "metrics/"): "of samples, as prometheus_client calls it",
    ("kind", "metrics/"): "of a metric, and of a slot: the name of a label",
    ("message", ""): "of an exception or of a check; no job is called so",
    ("fetch", "store/connection.py"): "rows of a statement, as the driver calls it",
    ("fetch", "store/transactions.py"): "the same in a transaction that is open",
    ("fetch", "store/session.py"): "rows, as the driver calls it",
    ("payload", "store/notify.py"): "of a NOTIFY, as PostgreSQL calls it",
    ("task", "execution/attempt.py"): "asyncio's",
    ("task", "contrib/importing/"): "Celery's and Django-Q2's",
    ("task", "workers/executors/coroutines.py"): "asyncio's",
    (
        "stuck",
        "workers/executors/threads.py",
    ): "an attempt that its threads left waiting",
}

NOT_OURS = ("backends/",)  # django.tasks has its own words


def defined(module: Module) -> Iterator[str]:
    """Every name that a module gives to something."""
    for node in module.nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.alias(asname=str(name)):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.ExceptHandler(name=str(name)):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name


@cache
def words_of(name: str) -> str:
    """The words of an identifier, in the singular: ``dead letter queue``."""
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)
    return " ".join(word.lower() for word in words)


def forbidden_in(name: str, forbidden: Iterable[str]) -> Iterator[str]:
    """The forbidden words that an identifier has, also in the plural."""
    words = words_of(name)
    for word in forbidden:
        if re.search(rf"\b{word}s?\b", words):
            yield word


def refused_in(module: Module) -> dict[str, str]:
    """The words that a module must not use, each with what to say instead."""
    return {
        **({} if module.is_in(*NOT_OURS) else FORBIDDEN),
        **DIALECT,
        **(MANY_MEANINGS if module.is_in(*ENGINE) else {}),
        **VAGUE,
    }


@cache
def occurrences(module: Module) -> set[tuple[str, str, str]]:
    """Word, path and identifier of every refused word in a module."""
    names = {*defined(module), *module.path.removesuffix(".py").split("/")}
    refused = refused_in(module)
    any_of_them = re.compile(rf"\b(?:{'|'.join(refused)})s?\b")
    return {
        (word, module.path, name)
        for name in names
        if any_of_them.search(words_of(name))
        for word in forbidden_in(name, refused)
    }


@pytest.mark.dear
def test_no_identifier_or_file_has_a_refused_word() -> None:
    """But where it is allowed; and none is allowed in vain."""
    strangers, used = set(), set()
    for module in modules():
        for word, path, name in occurrences(module):
            allowed = {
                (one, place)
                for one, place in ALLOWED
                if one == word and path.startswith(place)
            }
            used |= allowed
            if not allowed:
                instead = refused_in(module)[word]
                strangers.add((word, path, name, f"say: {instead}"))
    assert (strangers, ALLOWED.keys() - used) == (set(), set())


def test_a_refused_word_is_found_inside_a_name_and_not_in_part_of_a_word() -> None:
    names = {
        "JobManager": ["manager"],
        "find_zombies": ["zombie"],
        "dead_letter_queue": ["dead letter"],
        "_fetchOne": ["fetch"],
        "HTTPService": ["service"],
        "utils": ["utils", "util"],
        "_look_after": ["look"],
        "kinds": ["kind"],
        "JobNotFound": ["found"],
        "_roster": ["roster"],
        "MaintenanceKeeper": ["keeper"],
        "bells": ["bell"],
        **dict.fromkeys(["backing", "is_dead", "letter", "multitasking", "pack"], []),
        **dict.fromkeys(["overlooked", "essay", "arrests", "restarts"], []),
    }
    words = {**FORBIDDEN, **DIALECT, **VAGUE}
    assert {name: list(forbidden_in(name, words)) for name in names} == names
