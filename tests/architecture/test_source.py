"""What the tests of the shape read is read whatever else happens meanwhile."""

from __future__ import annotations

import ast
import gc
import inspect

import pytest

from tests.architecture.source import parsed


class Parsing:
    """Garbage that parses when it is collected, as whatever logs a traceback."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        ast.parse("a + b * c")


@pytest.mark.dear
def test_garbage_that_parses_spoils_no_tree() -> None:
    text = inspect.getsource(pytest)
    for threshold in range(50, 90, 8):
        for _ in range(20):
            Parsing()
        before = gc.get_threshold()
        gc.set_threshold(threshold)
        try:
            assert parsed(text).body
        finally:
            gc.set_threshold(*before)
    assert gc.isenabled()
    gc.collect()  # what is left would spoil a tree of a later test
