"""The screen itself: a pane with its lines, refreshed while it is looked at."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from typing import ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Input, Static, Tab, Tabs

from django_jobqueue.conf import conf
from django_jobqueue.contrib.console.top_screen.panes import (
    PANES,
    Command,
    Line,
    Pane,
    Snapshot,
    header,
    lines,
    shown,
    warning,
)
from django_jobqueue.contrib.console.top_screen.reader import Reader
from django_jobqueue.text import numbers


class Question(ModalScreen[bool]):
    """Asks; only ``y`` is a yes."""

    CSS: ClassVar[str] = """
    Question { align: center middle; }
    Question Vertical {
        width: 76; max-width: 95%; height: auto; padding: 1 2;
        border: round $warning; background: $surface;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,enter,q", "answer(False)", "No"),
    ]

    def __init__(self, *lines: str) -> None:
        super().__init__()
        self.lines = lines

    def compose(self) -> ComposeResult:
        """The question."""
        with Vertical():
            yield Static(Text(lines_shown(self.lines)), id="question")
            yield Static(Text("\ny: yes   n: no"))

    def action_answer(self, answer: bool) -> None:
        """Close with this answer."""
        self.dismiss(answer)


class Details(ModalScreen[None]):
    """A text to be read."""

    CSS: ClassVar[str] = """
    Details { align: center middle; }
    Details VerticalScroll {
        width: 95%; height: 90%; padding: 1 2; border: round $primary;
        background: $surface;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "close", "Close")
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self.title_shown = title
        self.text = text

    def compose(self) -> ComposeResult:
        """The text, in its lines."""
        with VerticalScroll() as scroll:
            scroll.border_title = Text(shown(self.title_shown))
            scroll.border_subtitle = "Esc: close"
            yield Static(Text(lines_shown(self.text.splitlines())), id="details")

    def action_close(self) -> None:
        """Back to the panes."""
        self.dismiss(None)


def lines_shown(lines: Iterable[str]) -> str:
    """Lines as the terminal may have them."""
    return "\n".join(shown(line.expandtabs()) for line in lines)


PATIENCE: Final = 3.0  # seconds without figures, beside those between two readings
NAMES: Final = {pane.name: pane for pane in PANES}
EFFECTS: Final = {"p": "pause or resume", "d": "drain or resume", "c": "cancel"}


class HasRead(Message):
    """There are new figures."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot


class HasFailed(Message):
    """The database cannot be used now."""

    def __init__(self, problem: str) -> None:
        super().__init__()
        self.problem = problem


class HasRun(Message):
    """A command has run."""

    def __init__(self, command: Command, output: str, *, is_answer: bool) -> None:
        super().__init__()
        self.command = command
        self.output = output
        self.is_answer = is_answer


class Top(App[None]):
    """``jobqueue top``."""

    CSS: ClassVar[str] = """
    #figures { height: auto; padding: 0 1; background: $boost; }
    #problem { height: auto; padding: 0 1; background: $error; color: $text; }
    #warning { height: auto; padding: 0 1; background: $warning; color: $text; }
    #problem, #warning { display: none; }
    #filter { display: none; height: 3; }
    DataTable { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "next_pane", "Pane", priority=True),
        *(
            Binding(str(number), f"pane('{pane.name}')", pane.name, show=False)
            for number, pane in enumerate(PANES, 1)
        ),
        Binding("s", "sort", "Sort"),
        Binding("S", "reverse", "Reverse", show=False),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("p", "act('p')", "Pause"),
        Binding("d", "act('d')", "Drain"),
        Binding("c", "act('c')", "Cancel"),
        Binding("q", "quit", "Quit"),
        Binding("escape", "clear", "Clear", show=False),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, every: float = 1.0) -> None:
        super().__init__()
        self.title = "jobqueue top"
        self.pane: Pane = PANES[0]
        self.snapshot: Snapshot | None = None
        self.column = self.pane.sorted_by
        self.is_reversed = False
        self.wanted = ""  # the filter
        self._lines: dict[str, Line] = {}  # that are shown, by key
        self._heard_at = time.monotonic()  # of the reader
        self._patience = PATIENCE + every
        self.reader = Reader(self, every, self.pane)

    # In the reader's thread.

    def has_read(self, snapshot: Snapshot) -> None:
        """There are new figures."""
        self.post_message(HasRead(snapshot))

    def has_failed(self, problem: str) -> None:
        """The database cannot be used now."""
        self.post_message(HasFailed(problem))

    def has_run(self, command: Command, output: str, *, is_answer: bool) -> None:
        """A command has run."""
        self.post_message(HasRun(command, output, is_answer=is_answer))

    # In that of the screen.

    def compose(self) -> ComposeResult:
        """Figures, panes, a table and the keys."""
        yield Static("", id="figures")
        yield Static("", id="warning")
        yield Static("", id="problem")
        yield Tabs(*(Tab(pane.name, id=pane.name) for pane in PANES))
        yield Input(placeholder="Lines that contain…", id="filter")
        yield DataTable(cursor_type="row", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to read."""
        self._table.focus()
        self._show_columns()
        self.reader.start()
        self.set_interval(1.0, self._notice_silence)

    def on_unmount(self) -> None:
        """End it."""
        self.reader.stop()

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one(DataTable)

    @property
    def _line(self) -> Line | None:
        """The one that is chosen."""
        table = self._table
        if not table.row_count:
            return None
        key = table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value
        return self._lines.get(key or "")

    @property
    def _is_drawn(self) -> bool:
        """True if there is something to show figures on; not at the very end."""
        return self.is_running and bool(self.query("#problem"))

    def on_has_read(self, message: HasRead) -> None:
        """Show it."""
        if not self._is_drawn:
            return
        self.snapshot = message.snapshot
        self._heard_at = time.monotonic()
        self.query_one("#problem").display = False
        first = warning(message.snapshot)
        self.query_one("#warning", Static).update(Text(shown(first)))
        self.query_one("#warning").display = bool(first)
        self._show()

    def on_has_failed(self, message: HasFailed) -> None:
        """Say so; the figures stay, and the next one tries again."""
        if not self._is_drawn:
            return
        self._heard_at = time.monotonic()
        self._report(f"cannot be used: {message.problem}")

    def _notice_silence(self) -> None:
        silent = time.monotonic() - self._heard_at
        if silent > self._patience and self._is_drawn:
            self._report(f"has not answered for {numbers.span(silent)}")

    def _report(self, trouble: str) -> None:
        text = f"The database {conf.database!r} {trouble}"
        problem = self.query_one("#problem", Static)
        problem.update(Text(shown(text)))
        problem.display = True

    def on_has_run(self, message: HasRun) -> None:
        """Show what it printed."""
        if message.is_answer:
            title = " ".join(("jobqueue", *message.command))
            self.push_screen(Details(title, message.output or "Nothing was printed."))
        else:
            self.notify(shown(message.output or "Done."), markup=False)

    def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        """Another pane was chosen."""
        pane = NAMES[str(event.tab.id)]
        if pane is not self.pane:
            self.pane, self.column, self.is_reversed = pane, pane.sorted_by, False
            self._show_columns()
            self._show()
            self.reader.refresh(pane)
        self._table.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Another filter."""
        self.wanted = event.value
        self._show()

    def on_input_submitted(self) -> None:
        """The filter stays; the keys are those of the table again."""
        self.query_one("#filter").display = bool(self.wanted)
        self._table.focus()

    def on_data_table_row_selected(self) -> None:
        """Enter: all there is to know of the line."""
        line = self._line
        if line is not None and line.details:
            self.reader.run_commands(line.details, is_answer=True)

    def action_next_pane(self) -> None:
        """The one to the right."""
        self.query_one(Tabs).action_next_tab()

    def action_pane(self, name: str) -> None:
        """The one of this name."""
        self.query_one(Tabs).active = name

    def action_sort(self) -> None:
        """By the next column."""
        self.column = (self.column + 1) % len(self.pane.titles)
        self._show_columns()
        self._show()

    def action_reverse(self) -> None:
        """The other way round."""
        self.is_reversed = not self.is_reversed
        self._show_columns()
        self._show()

    def action_filter(self) -> None:
        """Ask for the text that lines must contain."""
        entry = self.query_one("#filter", Input)
        entry.display = True
        entry.focus()

    def action_clear(self) -> None:
        """No filter."""
        entry = self.query_one("#filter", Input)
        entry.value = ""
        entry.display = False
        self._table.focus()

    def action_act(self, key: str) -> None:
        """Ask, and run the command of the chosen line."""
        line = self._line
        command = line.actions.get(key) if line is not None else None
        if command is None:
            self.notify(f"Nothing to {EFFECTS[key]} here.")
            return
        words = " ".join(("manage.py jobqueue", *command))
        self.push_screen(Question("Run this?", words), partial(self._do, command))

    def _do(self, command: Command, answer: bool | None) -> None:
        if answer:
            self.reader.run_commands([command], is_answer=False)

    def _show_columns(self) -> None:
        table = self._table
        table.clear(columns=True)
        for number, title in enumerate(self.pane.titles):
            arrow = "▲" if self.is_reversed else "▼"
            mark = f" {arrow}" if number == self.column else ""
            table.add_column(Text(f"{title}{mark}"), key=title)

    def _show(self) -> None:
        """The lines as they are now; the chosen one stays chosen."""
        if self.snapshot is None:
            return
        self.query_one("#figures", Static).update(Text(header(self.snapshot)))
        table, chosen, scrolled = self._table, self._line, self._table.scroll_y
        shown_lines = lines(
            self.pane,
            self.snapshot,
            column=self.column,
            reverse=self.is_reversed,
            wanted=self.wanted,
        )
        table.clear()
        for line in shown_lines:
            cells = [
                Text(shown(cell), justify="left" if isinstance(value, str) else "right")
                for cell, value in zip(line.cells, line.values, strict=True)
            ]
            table.add_row(*cells, key=line.key)
        self._lines = {line.key: line for line in shown_lines}
        if chosen is not None and chosen.key in self._lines:
            table.move_cursor(row=table.get_row_index(chosen.key), scroll=False)
            table.scroll_to(y=scrolled, animate=False)
