"""What is laid over the screen: a question, and a text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from django_jobqueue.contrib.console.top_screen.panes import shown


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
