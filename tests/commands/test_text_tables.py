"""Tables and bars: drawn with rich on a terminal, plain text elsewhere."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from django.core.management.base import OutputWrapper
from django.core.management.color import make_style, no_style

from django_jobqueue.management.jobqueue import rich_output
from django_jobqueue.management.jobqueue.batches import audit_log, progress
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.text_tables import Row, plain_table
from django_jobqueue.verbs.columns import NUMBER, Column
from tests.commands.conftest import Terminal, needs_rich

COLUMNS = [
    Column(label="Name", breaks=True),
    Column(label="Jobs", type=NUMBER),
    Column(label="Message", cut=True),
]
ROWS = [
    Row(["shop.send_receipt", "7", "no stock of " * 9]),
    Row(["mail", "10,000+", "-"]),
]


def console(stream: io.StringIO, verbosity: int = 1) -> Console:
    wrapped = OutputWrapper(stream)
    return Console(wrapped, wrapped, no_style(), verbosity)


def drawn(columns: list[Column], rows: list[Row], stream: io.StringIO) -> list[str]:
    """The lines of a table on this stream, without the spaces at their ends."""
    console(stream).table(columns, rows)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_columns_are_as_wide_as_their_longest_text() -> None:
    rows = [Row(["shop.send_receipt", "7"]), Row(["mail", "10,000+"])]
    assert plain_table(COLUMNS[:2], rows) == [
        "Name                  Jobs",
        "shop.send_receipt        7",
        "mail               10,000+",
    ]


def test_a_terminal_shows_the_same_rows(
    monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert drawn(COLUMNS, ROWS, Terminal()) == [
        line.rstrip() for line in drawn(COLUMNS, ROWS, io.StringIO())
    ]


@needs_rich
def test_with_rich_a_table_fits_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = drawn(COLUMNS, ROWS, Terminal())
    assert max(map(len, lines)) <= 40
    assert any("…" in line for line in lines)  # a message is cut
    names = "".join(line.split(" ")[0] for line in lines[1:-1])
    assert names == "shop.send_receipt"  # a name is not


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_control_characters_and_markup_of_a_text_are_only_text(
    stream: type[io.StringIO], installed: bool
) -> None:
    columns, rows = (
        [Column(label="Message")],
        [Row(["a\x1b[31mb\nc [red]d[/red] :smile:"])],
    )
    (_, line) = drawn(columns, rows, stream())
    assert line == "a\\x1b[31mb\\nc [red]d[/red] :smile:"


@needs_rich
def test_a_row_has_its_colour_unless_there_is_to_be_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = []
    for style in (make_style("dark"), no_style()):
        stream = Terminal()
        wrapped = OutputWrapper(stream)
        on = Console(wrapped, wrapped, style, 1)
        on.table([Column(label="Name")], [Row(["mail"], "red")])
        shown.append(stream.getvalue())
    assert "\x1b[31mmail" in shown[0]
    assert "\x1b" not in shown[1]


@needs_rich
def test_a_bar_grows_on_a_terminal_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    with progress(console(stream), "Pruning", 4_000) as advance:
        advance(1_000)
        audit_log.warning("replay: 5 by anna")  # gets the line of the bar
        assert stream.getvalue().endswith("\x1b[2K")
        advance(4_000)  # more may be done than was counted before
    text = stream.getvalue()
    for part in ("0 / 4,000  0 %", "1,000 / 4,000  25.0 %", "5,000 / 5,000  100 %"):
        assert part in text
    assert text.endswith("\x1b[2K")  # the line is cleared
    audit_log.warning("replay: 5 by anna")
    assert stream.getvalue() == text


def test_nothing_is_drawn_into_a_file_without_rich_or_when_it_is_to_be_quiet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for stream, verbosity, has_rich in (
        (io.StringIO(), 1, True),
        (Terminal(), 0, True),
        (Terminal(), 1, False),
    ):
        monkeypatch.setattr(rich_output, "IS_INSTALLED", has_rich)
        with progress(console(stream, verbosity), "Pruning", 10) as advance:
            advance(10)
        assert stream.getvalue() == ""


def test_a_terminal_without_all_characters_gets_plain_text() -> None:
    class Latin(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    raw = io.BytesIO()
    stream = Latin(raw, encoding="latin-1")
    wrapped = OutputWrapper(stream)  # type: ignore[arg-type]
    latin = Console(wrapped, wrapped, no_style(), 1)
    with progress(latin, "Pruning", 10) as advance:
        advance(10)
    latin.table([Column(label="Name")], [Row(["注文"])])
    latin.stdout.flush()
    assert raw.getvalue() == b"Name\n??\n"


@pytest.mark.dear
def test_where_rich_is_not_installed_commands_can_be_imported() -> None:
    code = (
        "import sys; sys.modules['rich.console'] = None\n"
        "from django_jobqueue.management.jobqueue import rich_output\n"
        "assert not rich_output.IS_INSTALLED\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
