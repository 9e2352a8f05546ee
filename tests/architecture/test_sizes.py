"""Sizes: a file has one idea, and a function fits a screen.

Nothing is split to satisfy a counter: a cap of 200 lines made seven classes of 195 to
200 lines, and a base with one subclass. The caps here only stop what nobody would want;
``make structure`` prints what a reviewer should look at.
"""

from __future__ import annotations

from tests.architecture.source import lines, modules

FILE, FUNCTION = 400, 60


def test_no_file_has_more_than_400_lines() -> None:
    sizes = {m.path: len(m.text.splitlines()) for m in modules()}
    assert {path: size for path, size in sizes.items() if size > FILE} == {}


def test_a_function_fits_a_screen() -> None:
    sizes = [
        (f"{module.path} {function.name}", lines(function))
        for module in modules()
        for function in module.functions
    ]
    assert [each for each in sizes if each[1] > FUNCTION] == []


def test_nine_functions_of_ten_have_20_lines_at_most() -> None:
    sizes = sorted(lines(f) for module in modules() for f in module.functions)
    assert sizes[len(sizes) * 9 // 10] <= 20
