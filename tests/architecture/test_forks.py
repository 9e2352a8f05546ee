"""No lock of the package stays held in a fork, and no thread is missed there."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import pytest

from tests.architecture.source import PACKAGE, modules

LOCK, CONDITION, EVENT = type(threading.Lock()), threading.Condition, threading.Event


def parts(value: Any) -> Iterable[tuple[Any, Any]]:
    """What a value of ours holds, with its names."""
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, list | tuple | set | frozenset):
        return enumerate(value)
    if type(value).__module__.startswith(PACKAGE.name):
        slots = [s for c in type(value).__mro__ for s in getattr(c, "__slots__", ())]
        named = [(s, getattr(value, s)) for s in slots if hasattr(value, s)]
        return [*getattr(value, "__dict__", {}).items(), *named]
    if isinstance(value, CONDITION | EVENT):
        return vars(value).items()
    return ()


def locks() -> dict[str, Any]:
    """Each lock that a module holds, by its way there."""
    found: dict[str, Any] = {}
    seen = set()

    def walk(path: str, value: Any, depth: int) -> None:
        if id(value) in seen or depth > 8:
            return
        seen.add(id(value))
        if isinstance(value, LOCK):
            found[path] = value
        for name, part in list(parts(value)):
            walk(f"{path}.{name}", part, depth + 1)

    for name, module in sorted(sys.modules.items()):
        if name.startswith(PACKAGE.name):
            for key, value in list(vars(module).items()):
                if not isinstance(value, type):
                    walk(f"{name}.{key}", value, 0)
    return found


@pytest.mark.processes
def test_locks_that_are_held_at_a_fork_are_free_in_the_child() -> None:
    """What the modules hold is looked for again in the child: a lock that another
    thread held at the fork is held for ever there, so it must have been replaced."""
    for each in modules():
        import_module(each.name)
    found = [lock for lock in locks().values() if lock.acquire(blocking=False)]
    reader, writer = os.pipe()
    try:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            child = os.fork()
        if child == 0:
            held = [path for path, lock in locks().items() if lock.locked()]
            os.write(writer, " ".join(held).encode())
            os._exit(0)
    finally:
        for lock in found:
            lock.release()
    os.close(writer)
    with os.fdopen(reader) as answer:
        assert answer.read() == ""
    os.waitpid(child, 0)
    assert len(found) >= 4
