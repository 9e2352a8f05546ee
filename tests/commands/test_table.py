"""Tables that fit the terminal, and the bar above them."""

from __future__ import annotations

import io

import pytest
from django.core.management.base import OutputWrapper
from django.core.management.color import no_style

from django_jobqueue.management.jobqueue.console import Console, columns_of
from django_jobqueue.management.jobqueue.progress import Progress, audit_log
from django_jobqueue.management.jobqueue.table import Column, Row, cut, table
from tests.commands.conftest import Terminal

COLUMNS = [Column("Name", least=6, cut="middle"), Column("Jobs", right=True)]


def test_columns_are_as_wide_as_their_longest_text() -> None:
    rows = [Row(["shop.send_receipt", "7"]), Row(["mail", "10,000+"])]
    assert table(COLUMNS, rows, width=None) == [
        "Name                  Jobs",
        "shop.send_receipt        7",
        "mail               10,000+",
    ]


def test_a_name_is_cut_in_the_middle_where_there_is_no_room() -> None:
    rows = [Row(["shop.send_receipt", "7"])]
    assert table(COLUMNS, rows, width=16)[1] == "shop.…eipt     7"


def test_the_start_or_the_end_of_a_text_can_be_cut_instead() -> None:
    name = "shop.jobs.send_receipt"
    assert cut(name, 13, "start") == "…send_receipt"
    assert cut(name, 13, "end") == "shop.jobs.se…"
    assert cut(name, 13, "middle") == "shop.j…eceipt"
    assert cut(name, 22, "start") == name


def test_no_line_is_longer_than_the_terminal_even_if_something_is_lost() -> None:
    rows = [Row(["shop.send_receipt", "1,234,567"])]
    lines = table(COLUMNS, rows, width=9)
    assert [columns_of(line) for line in lines] == [9, 9]
    assert lines[1].endswith("…")


def test_a_title_may_have_two_lines() -> None:
    columns = [Column("Queue"), Column("Run\np95", right=True)]
    assert table(columns, [Row(["mail", "40 ms"])], width=None) == [
        "         Run",
        "Queue    p95",
        "mail   40 ms",
    ]


def test_wide_characters_take_two_columns_and_marks_none() -> None:
    assert columns_of("注文") == 4
    assert columns_of("e\u0301") == 1
    assert cut("注文の確認", 5) == "注文…"
    assert cut("abc", 0) == ""


def test_control_characters_of_a_text_do_not_reach_the_terminal() -> None:
    (_, line) = table([Column("Message")], [Row(["a\x1b[31mb\nc"])], width=None)
    assert line == "a\\x1b[31mb\\nc"


def test_the_colour_of_a_row_does_not_count_as_width() -> None:
    rows = [Row(["mail", "7"], lambda text: f"<{text}>"), Row(["documents", "1"])]
    assert table(COLUMNS, rows, width=None)[1:] == [
        "<mail          7>",
        "documents     1",
    ]


def console(stream: io.StringIO, verbosity: int = 1) -> Console:
    wrapped = OutputWrapper(stream)
    return Console(wrapped, wrapped, no_style(), verbosity)


def test_a_bar_grows_on_a_terminal_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    with Progress(console(stream), "Pruning", 4_000) as progress:
        progress.advance(1_000)
    drawn = stream.getvalue().split("\r\x1b[K")
    assert drawn == [
        "",
        f"Pruning {'░' * 30} 0 / 4,000    0 %",
        f"Pruning {'█' * 7}{'░' * 23} 1,000 / 4,000   25 %",
        "",
    ]


def test_a_bar_is_as_wide_as_the_terminal_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "36")
    stream = Terminal()
    with Progress(console(stream), "Pruning", 10):
        pass
    (_, line, _) = stream.getvalue().split("\r\x1b[K")
    assert "░" in line
    assert columns_of(line) < 36


def test_on_a_very_narrow_terminal_only_the_figures_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = Terminal()
    with Progress(console(stream), "Pruning", 10):
        pass
    assert stream.getvalue() == "\r\x1b[K0 / 10    0 %\r\x1b[K"


def test_more_may_be_done_than_was_counted_before() -> None:
    stream = Terminal()
    with Progress(console(stream), "Pruning", 10) as progress:
        progress.advance(25)
    assert "25 / 25  100 %" in stream.getvalue()


@pytest.mark.parametrize(
    ("stream", "verbosity"), [(io.StringIO(), 1), (Terminal(), 0)], ids=["file", "v0"]
)
def test_nothing_is_drawn_into_a_file_or_when_it_is_to_be_quiet(
    stream: io.StringIO, verbosity: int
) -> None:
    with Progress(console(stream, verbosity), "Pruning", 10) as progress:
        progress.advance(10)
    assert "Pruning" not in stream.getvalue()


def test_a_terminal_without_these_characters_gets_others() -> None:
    class Latin(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    raw = io.BytesIO()
    stream = Latin(raw, encoding="latin-1")
    wrapped = OutputWrapper(stream)  # type: ignore[arg-type]
    latin = Console(wrapped, wrapped, no_style(), 1)
    with Progress(latin, "Pruning", 10) as progress:
        progress.advance(10)
    latin.print("注文 was pruned")
    latin.stdout.flush()
    assert b"Pruning ####" in raw.getvalue()
    assert b"?? was pruned" in raw.getvalue()


def test_a_line_of_the_audit_log_gets_the_line_of_the_bar() -> None:
    stream = Terminal()
    with Progress(console(stream), "Pruning", 10) as progress:
        progress.advance(5)
        audit_log.warning("replay: 5 by anna")
        assert stream.getvalue().endswith("50 %\r\x1b[K")
        progress.advance(5)
    before = stream.getvalue()
    audit_log.warning("replay: 5 by anna")
    assert stream.getvalue() == before
