"""Numbers read the same on every page: grouped, and with the separators of the language
that the page is in. What each page shows is in ``test_endpoints``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from django.utils import translation

from django_jobqueue.text import numbers
from tests.admin.crowd import wrong
from tests.architecture.source import PACKAGE, modules


def test_the_check_notices_what_is_wrong() -> None:
    for text in ("15145", "is 48211 now", "51.914 jobs", "20,2 s", "13,3 %"):
        assert wrong(text, "en")
    for text in ("15145", "1,270 jobs", "13.3 %", "20.2 s"):
        assert wrong(text, "de")
    for text in ("01a2046d…0a2494", "web-1:41000", "2026-11-22 18:03:02", "1,270", "7"):
        assert not wrong(text, "en")
    for text in ("1.270 Jobs", "13,3 %", "2026.11.3", "3.13.1"):
        assert not wrong(text, "de")


# Where numbers are written.

OWN = {
    "management/commands/runworkers.py": "a format of logging",
    "admin/parts/charts.py": "coordinates, which no locale writes otherwise",
}
NUMBERS = re.compile(r"%\((\w+)\)[-\d.]*[dfeg]")
MAY = {
    "line": "of a text, as programs count them",
    "column": "of a text",
    "digits": "six",
    "most": "a thousand characters",
    "percent": "whole, up to 100",
    "number": "a priority, up to 100",
}
SHOWN = ("admin/", "management/", "search/", "stats/")
CONSTANT = re.compile(r"([a-z_]+\.)?[A-Z_]+")  # in a command's help, which is English


def places() -> Iterator[tuple[str, str]]:
    """Each place of pages and commands that writes a number by itself: file, and
    what."""
    for module in modules():
        if not module.is_in(*SHOWN) or module.path in OWN:
            continue
        for node in module.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for name in NUMBERS.findall(node.value):
                    if name not in MAY:
                        yield module.path, node.value
            if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
                spec = ast.unparse(node.format_spec)
                if CONSTANT.fullmatch(ast.unparse(node.value)):
                    continue
                if re.search(r"[,_]|\d*[feg%]'?$", spec):
                    yield module.path, ast.unparse(node)


def test_numbers_are_written_in_one_place() -> None:
    for_programs = {
        "admin/failures/failure_page.py",  # the width of a drawing
        "management/jobqueue/health_check.py",  # figures that Nagios parses
    }
    assert [place for place in places() if place[0] not in for_programs] == []
    shown = {module.path.partition("/")[0] + "/" for module in modules()}
    assert shown >= set(SHOWN)


COUNTED = re.compile(
    r"blocktrans(?:late)? count (\w+)=.*?%\}(.*?)\{%\s*endblocktrans", re.DOTALL
)


def test_no_template_shows_a_count_as_it_is() -> None:
    """What decides about the plural is a number; what is shown is one as people read
    it."""
    templates = list(PACKAGE.rglob("*.html"))
    found = [pair for one in templates for pair in COUNTED.findall(one.read_text())]
    assert found
    assert [name for name, body in found if f"{{{{ {name} }}}}" in body] == []


def test_numbers_in_both_languages() -> None:
    """A share that is not zero never reads as zero."""
    percent, span, done = numbers.percent, numbers.span, numbers.done_text
    cases: list[tuple[Any, Any, str, str]] = [
        (percent, (None,), "–", "–"),
        (percent, (0.0,), "0 %", "0 %"),
        (percent, (1 / 3_056,), "< 0.1 %", "< 0,1 %"),
        (percent, (0.001,), "0.1 %", "0,1 %"),
        (percent, (0.133,), "13.3 %", "13,3 %"),
        (percent, (0.5,), "50.0 %", "50,0 %"),
        (percent, (0.999,), "99.9 %", "99,9 %"),
        (percent, (3_055 / 3_056,), "> 99.9 %", "> 99,9 %"),
        (percent, (1.0,), "100 %", "100 %"),
        (numbers.number, (48_211,), "48,211", "48.211"),
        (numbers.number, (-48_211,), "-48,211", "-48.211"),
        (numbers.decimal, (1_204.55,), "1,204.5", "1.204,5"),
        (numbers.decimal, (0.04,), "0.0", "0,0"),
        (numbers.at_least, (10_000, 10_000), "10,000", "10.000"),
        (numbers.at_least, (10_001, 10_000), "10,000+", "10.000+"),
        (numbers.about, (7,), "≈ 7", "≈ 7"),
        (numbers.about, (206_400,), "≈ 206 K", "≈ 206 Tsd."),
        (numbers.about, (5_001_459,), "≈ 5.0 M", "≈ 5,0 Mio."),
        (numbers.duration, (20_250,), "20.2 s", "20,2 s"),
        (numbers.duration, (59_990,), "1 m 00 s", "1 min 00 s"),
        (numbers.run_time, (0.00158,), "2 ms", "2 ms"),
        (numbers.run_time, (None,), "–", "–"),
        (span, (-3,), "0 s", "0 s"),
        (span, (12_345 * 86_400,), "12,345 d 0 h", "12.345 d 0 h"),
        (numbers.megabytes, (1_204 * 2**20,), "1,204 MB", "1.204 MB"),
        (numbers.rounded, (0.25,), "0.25", "0,25"),
        (numbers.rounded, (30.0,), "30", "30"),
        (done, (30, 1_200), "30 of 1,200 (2 %)", "30 von 1.200 (2 %)"),
        (done, (30, None), "30", "30"),
    ]
    for language, column in (("en", 2), ("de", 3)):
        with translation.override(language):
            found = [(case[0](*case[1]), case[column]) for case in cases]
            assert [pair for pair in found if pair[0] != pair[1]] == []
