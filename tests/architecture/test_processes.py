"""What a worker process may not do, since many processes and threads share a host."""

from __future__ import annotations

import ast

from tests.architecture.source import modules


def test_nothing_waits_with_select_which_fails_above_descriptor_1023() -> None:
    guilty = [
        (module.path, node.lineno)
        for module in modules()
        for name, node in module.calls
        if name in ("select.select", "selectors.SelectSelector")
    ]
    imported = [m.path for m in modules() if "select.select" in m.imports]
    assert (guilty, imported) == ([], [])


def test_one_place_forks_and_so_closes_what_a_child_must_not_have() -> None:
    forks = {
        module.path
        for module in modules()
        for name, _node in module.calls
        if name in ("os.fork", "os.forkpty") or name.startswith("multiprocessing.")
    }
    assert forks == {"host/child.py"}


def test_one_place_reads_what_proc_says_of_others_and_knows_that_it_may_be_hidden() -> (
    None
):
    readers = {
        module.path
        for module in modules()
        for text, _line in module.texts
        if text.startswith("/proc/")
    }
    assert readers == {"processes/identity.py"}


def test_nothing_fills_shared_memory_with_zeros_before_it_writes() -> None:
    guilty = [
        (module.path, node.lineno)
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.Attribute) and node.attr == "pack_into"
    ]
    assert guilty == []
