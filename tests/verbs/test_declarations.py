"""Verbs are declared once: what they say is so."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import pytest

from django_jobqueue.rooms import rooms
from django_jobqueue.signals import operated
from django_jobqueue.verbs.declarations import On, Verb
from tests.architecture.source import modules

SUBJECTS = [module for module in modules() if module.is_in("verbs/")]
# Of the filter, or turned round by the command.
OF_COMMANDS = {"replay": {"again", "at_most_once"}, "cancel": {"status"}}
# The least that they take, with nothing to do it to.
MORE: dict[str, dict[str, Any]] = {
    "assign": {"assignee": "anna"},
    "fail": {"reason": "x"},
    "note": {"text": "x"},
    "reschedule": {"priority": 1},
    "scale": {"processes": 1},
}
OF_ONE = {On.BULK_OPERATION, On.ARCHIVED_JOB, On.DATABASE, On.SCHEDULE}


def verbs() -> list[Verb]:
    """Every one of them."""
    values = {
        id(one): one
        for module in SUBJECTS
        for value in vars(import_module(module.name)).values()
        for one in (value.values() if isinstance(value, dict) else [value])
        if isinstance(one, Verb)
    }
    return sorted(values.values(), key=lambda verb: (verb.on, verb.name))


def named(verb: Verb) -> str:
    return f"{verb.on}-{verb.name}"


def test_what_is_declared_for_all_surfaces_imports_none_of_them() -> None:
    surfaces = ("argparse", "django.contrib", "django.core.management", "ninja")
    rooms_of_ours = ("management", "admin", "contrib")
    ours = tuple(f"django_jobqueue.{room}" for room in rooms_of_ours)
    assert len(SUBJECTS) > 5
    guilty = [
        (module.path, name)
        for module in SUBJECTS
        for name in module.imports
        if name.startswith((*surfaces, *ours))
    ]
    assert guilty == []


@pytest.mark.parametrize("verb", verbs(), ids=named)
def test_a_function_takes_what_its_verb_says_and_a_role_has_its_right(
    verb: Verb,
) -> None:
    taken = inspect.signature(verb.function).parameters
    given = {argument.name for argument in verb.arguments}
    assert given - OF_COMMANDS.get(verb.name, set()) <= {*taken}
    assert "by" in taken
    rights = {
        name for room in rooms() for some in room.rights.values() for name in some
    }
    assert verb.right in rights or verb.on is On.DATABASE


@pytest.mark.django_db
@pytest.mark.parametrize(
    "verb", [one for one in verbs() if one.on not in OF_ONE], ids=named
)
def test_a_verb_is_recorded_under_the_name_that_it_says(verb: Verb) -> None:
    recorded = []

    def note(verb: str, **others: object) -> None:
        recorded.append(verb)

    operated.connect(note)
    try:
        verb.function([], by="anna", **MORE.get(verb.name, {}))
    finally:
        operated.disconnect(note)
    assert recorded == [verb.audit.format(name=verb.name)]
