"""No lock of the package stays held in a fork, and no thread is missed there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.architecture.source import ROOT, modules

# What the modules hold is looked for again in the child: a lock that another thread
# held at the fork is held for ever there, so it must have been replaced.
PROGRAM = """
import os, signal, sys, threading
import django
django.setup()
from importlib import import_module
for name in {names!r}:
    import_module(name)

LOCK, CONDITION, EVENT = type(threading.Lock()), threading.Condition, threading.Event

def parts(value):
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, (list, tuple, set, frozenset)):
        return enumerate(value)
    if type(value).__module__.startswith("django_jobqueue"):
        slots = [s for c in type(value).__mro__ for s in getattr(c, "__slots__", ())]
        named = [(s, getattr(value, s)) for s in slots if hasattr(value, s)]
        return [*getattr(value, "__dict__", {{}}).items(), *named]
    if isinstance(value, (CONDITION, EVENT)):
        return vars(value).items()
    return ()

def locks():
    found, seen = {{}}, set()
    def walk(path, value, depth):
        if id(value) in seen or depth > 8:
            return
        seen.add(id(value))
        if isinstance(value, LOCK):
            found[path] = value
        for name, part in list(parts(value)):
            walk(f"{{path}}.{{name}}", part, depth + 1)
    for name, module in sorted(sys.modules.items()):
        if name.startswith("django_jobqueue"):
            for key, value in list(vars(module).items()):
                if not isinstance(value, type):
                    walk(f"{{name}}.{{key}}", value, 0)
    return found

found = locks()
for lock in found.values():
    lock.acquire()
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    held = [path for path, lock in locks().items() if lock.locked()]
    os.write(writer, " ".join(held).encode())
    os._exit(0)
os.close(writer)
print(len(found), os.read(reader, 65_536).decode())
os.waitpid(child, 0)
"""


@pytest.mark.processes
def test_locks_that_are_held_at_a_fork_are_free_in_the_child() -> None:
    names = [module.name for module in modules()]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(names=names)],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DJANGO_SETTINGS_MODULE": "tests.static_settings",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    count, *held = done.stdout.split()
    assert int(count) >= 4
    assert held == []
