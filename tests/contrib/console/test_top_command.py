"""``jobqueue top``: the screen, driven by its keys."""

from __future__ import annotations

import asyncio
import builtins
import io
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, Self

import pytest
from django.core.management.base import CommandError
from django.db import OperationalError
from django.utils import timezone

pytest.importorskip("textual")

from textual.events import Key
from textual.widgets import DataTable, Static, Tabs

from django_jobqueue import operations
from django_jobqueue.contrib.console.top_command import (
    no_log_on_terminal,
)
from django_jobqueue.contrib.console.top_screen import reader
from django_jobqueue.contrib.console.top_screen.app import Details, Question, Top
from django_jobqueue.models import (
    AuditEntry,
    FailureGroup,
    JobType,
    Queue,
    QueuedJob,
    Worker,
)
from tests.commands.conftest import Terminal, jobqueue, refusal
from tests.store.rows import ADD, FAIL, ago, make, make_many
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)
LETTERS = {"slash": "/"}
HOSTILE = "[bold]mail[/bold]\x1b[31m"
Asked = tuple[Callable[[], Awaitable[Any]], "Future[Any]"]


class Played:
    """The screen in a thread of its own, whose event loop does what a test asks."""

    def __init__(self, size: tuple[int, int] = (80, 24)) -> None:
        self._size = size
        self._begun = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._play()))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._begun.wait(30)
        self.until(lambda app: app.snapshot is not None)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._asked.put_nowait, None)
        self._thread.join(30)
        self._app.reader.join(30)

    async def _play(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._asked: asyncio.Queue[Asked | None] = asyncio.Queue()
        self._app = Top(every=0.3)
        self._app.animation_level = "none"
        async with self._app.run_test(size=self._size) as self._pilot:
            self._begun.set()
            while (asked := await self._asked.get()) is not None:
                work, answer = asked
                try:
                    answer.set_result(await work())
                except BaseException as error:
                    answer.set_exception(error)

    def _ask(self, work: Callable[[], Awaitable[Any]]) -> Any:
        answer: Future[Any] = Future()
        self._loop.call_soon_threadsafe(self._asked.put_nowait, (work, answer))
        return answer.result(30)

    def press(self, *keys: str) -> None:
        """Press these keys, one after the other. The pilot itself would wait until the
        whole process is idle, test included."""

        async def press() -> None:
            for key in keys:
                letter = LETTERS.get(key, key if len(key) == 1 else None)
                self._app.post_message(Key(key, letter))
                await self._pilot.pause(0)

        self._ask(press)

    def confirm(self, key: str) -> None:
        self.press(key)
        self.until_shown(Question)
        self.press("y")
        self.until(lambda app: not isinstance(app.screen, Question))

    def see(self, look: Callable[[Top], Any]) -> Any:
        async def answer() -> Any:
            return look(self._app)

        return self._ask(answer)

    def until(self, is_so: Callable[[Top], object]) -> None:
        async def wait() -> None:
            async with asyncio.timeout(20):
                while not is_so(self._app):
                    await asyncio.sleep(0.01)

        self._ask(wait)

    def until_shown(self, dialog: type[Question] | type[Details]) -> None:
        self.until(lambda app: isinstance(app.screen, dialog))

    def text(self, name: str) -> str:
        text: str = self.see(
            lambda app: str(app.screen.query_one(f"#{name}", Static).render())
        )
        return text


def rows(app: Top) -> list[list[str]]:
    table = app.screen_stack[0].query_one(DataTable)
    return [
        [str(cell) for cell in table.get_row_at(index)]
        for index in range(table.row_count)
    ]


def first_cells(app: Top) -> list[str]:
    return [row[0] for row in rows(app)]


def said(app: Top) -> list[str]:
    return [note.message for note in app._notifications]  # private: Textual shows it


@pytest.fixture
def worker() -> Worker:
    return Worker.objects.create(
        name="web-1:7",
        host="web-1",
        pid=7,
        threads=8,
        running=1,
        lease_until=timezone.now() + timedelta(minutes=5),
    )


def test_queues_with_most_jobs_come_first_and_are_paused_after_a_question() -> None:
    make_many(3, ADD, queue="mail", run_after=ago(90))
    make_many(5, ADD, queue="reports")
    make(ADD, queue="mail", run_after=ago(-60))

    def paused() -> list[str]:
        return [queue.name for queue in Queue.objects.filter(paused=True)]

    with Played((160, 50)) as screen:
        screen.until(rows)
        assert screen.see(first_cells) == ["reports", "mail"]
        assert screen.see(rows)[1][1:5] == ["3", "1", "0", "1 m"]
        assert "ready 8" in screen.text("figures")
        assert screen.see(lambda app: app.query_one(DataTable).size.height) > 5
        screen.until(lambda app: app.query_one("#warning").display)
        assert "No worker is alive" in screen.text("warning")
        for answer in ("escape", "enter"):
            screen.press("p")
            screen.until_shown(Question)
            assert "jobqueue pause --queue reports" in screen.text("question")
            screen.press(answer)
            screen.until(lambda app: not isinstance(app.screen, Question))
        assert paused() == []
        screen.confirm("p")
        screen.until(lambda app: rows(app)[0][-1] == "paused")
        assert paused() == ["reports"]
        screen.confirm("p")
        screen.until(lambda app: rows(app)[0][-1] == "")
        assert paused() == []
    entries = AuditEntry.objects.order_by("id")
    assert [entry.verb for entry in entries] == ["pause", "resume"]
    assert all(entry.by.startswith("command line") for entry in entries)


def test_tab_and_numbers_choose_the_pane_and_lines_are_sorted_and_filtered() -> None:
    make_many(3, ADD, queue="mail")
    make_many(5, FAIL, queue="mail")
    group = FailureGroup.objects.create(
        fingerprint="0f0e0d0c-0000-4000-8000-000000000001",
        coarse="0f0e0d0c-0000-4000-8000-000000000002",
        error_class="ValueError",
        frame="shop.jobs:send",
        template="no such order",
    )

    with Played() as screen:
        screen.press("tab")
        screen.until(lambda app: first_cells(app) == [FAIL, ADD])
        screen.press(*"s" * 7)  # around to the first column
        screen.until(lambda app: first_cells(app) == [ADD, FAIL])
        screen.press("S")
        screen.until(lambda app: first_cells(app) == [FAIL, ADD])
        screen.press("slash", *"e.a", "enter")
        screen.until(lambda app: first_cells(app) == [ADD])
        make(ADD, queue="mail")  # the filter outlives a refresh
        screen.until(lambda app: rows(app)[0][1] == "4")
        assert screen.see(first_cells) == [ADD]
        screen.press("enter")
        screen.until_shown(Details)
        assert ADD in screen.text("details")
        screen.press("escape")
        screen.confirm("p")
        screen.until(lambda app: rows(app)[0][-1] == "paused")
        assert JobType.objects.get(pk=ADD).paused
        screen.press("escape")
        screen.until(lambda app: len(rows(app)) == 2)
        for number, name in enumerate(("Queues", "Types", "Workers", "Running"), 1):
            screen.press(str(number))
            screen.until(lambda app: app.pane.name == name)  # noqa: B023
            assert screen.see(lambda app: app.query_one(Tabs).active) == name
        screen.press("5")
        screen.until(lambda app: first_cells(app) == ["0f0e0d0c"])
        assert "no such order" in screen.see(rows)[0]
        screen.press("enter")
        screen.until_shown(Details)
        assert str(group.pk) in screen.text("details")


def test_the_chosen_line_stays_chosen_when_lines_move() -> None:
    make_many(3, ADD, queue="a")
    make_many(2, ADD, queue="b")

    def chosen(app: Top) -> str:
        return first_cells(app)[app.query_one(DataTable).cursor_row]

    with Played() as screen:
        screen.until(lambda app: first_cells(app) == ["a", "b"])
        screen.press("down")
        make_many(5, ADD, queue="b")
        make_many(9, ADD, queue="c")
        screen.until(lambda app: first_cells(app) == ["c", "b", "a"])
        screen.until(lambda app: chosen(app) == "b")


def test_a_running_job_is_explained_and_cancelled_and_its_worker_drained(
    worker: Worker,
) -> None:
    columns: dict[str, Any] = {"status": "running", "worker_id": worker.pk}
    id = make(ADD, started_at=ago(30), attempts=1, **columns)

    def asked() -> bool:
        return QueuedJob.objects.exclude(cancel_requested_at=None).exists()

    with Played() as screen:
        screen.press("4")
        screen.until(lambda app: rows(app) and rows(app)[0][-1] == str(id))
        assert "workers 1 (8 slots)" in screen.text("figures")
        assert screen.see(rows)[0][2:5] == [ADD, "default", "web-1:7"]
        screen.press("enter")
        screen.until_shown(Details)
        assert str(id) in screen.text("details")
        screen.press("q", "c")
        screen.until_shown(Question)
        screen.press("n")
        assert not asked()
        screen.confirm("c")
        eventually(asked)

        screen.press("c")
        screen.until_shown(Question)
        QueuedJob.objects.all().delete()
        screen.press("y")
        screen.until(lambda app: any("no job" in text for text in said(app)))

        screen.press("3")
        screen.until(lambda app: first_cells(app) == ["web-1:7"])
        screen.press("c")  # nothing to cancel: it says so, and asks nothing
        assert not screen.see(lambda app: isinstance(app.screen, Question))
        screen.press("d")
        screen.until_shown(Question)
        assert f"workers drain {worker.pk}" in screen.text("question")
        screen.press("y")
        eventually(lambda: Worker.objects.get(pk=worker.pk).desired == "drain")


def test_texts_of_rows_are_neither_markup_nor_codes_of_the_terminal() -> None:
    make(ADD, queue=HOSTILE)

    with Played() as screen:
        screen.until(rows)
        assert screen.see(first_cells) == ["[bold]mail[/bold]\\x1b[31m"]
        screen.press("p")
        screen.until_shown(Question)
        assert "[bold]mail[/bold]\\x1b" in screen.text("question")
        screen.press("y")
        screen.until(said)  # such a name cannot be paused
        assert "\x1b" not in str(screen.see(said))
    assert not Queue.objects.filter(paused=True).exists()


def test_during_an_outage_the_figures_stay_and_a_silent_server_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make(ADD, queue="mail")
    silent, real = threading.Event(), reader.read

    def fail(**needs: bool) -> None:
        raise OperationalError("the server\nis gone")

    def wait(**needs: bool) -> Any:
        silent.wait(30)
        return real(**needs)

    with Played() as screen:
        screen.until(rows)
        # private: the patience of its user, in seconds
        screen.see(lambda app: setattr(app, "_patience", 0.5))
        for read, problem in (
            (fail, "cannot be used: the server is gone"),
            (wait, "has not answered for"),
        ):
            with monkeypatch.context() as patched:
                patched.setattr(reader, "read", read)
                screen.until(lambda app: app.query_one("#problem").display)
                assert problem in screen.text("problem")
                assert screen.see(first_cells) == ["mail"]
            silent.set()
            screen.until(lambda app: not app.query_one("#problem").display)
            silent.clear()


def test_logs_are_not_written_over_the_screen() -> None:
    terminal, file = Terminal(), io.StringIO()
    handlers = [logging.StreamHandler(stream) for stream in (terminal, file)]
    logger = logging.getLogger("tests.top")
    logger.handlers = list(handlers)
    try:
        with no_log_on_terminal():
            logger.warning("on the screen")
        logger.warning("after it")
    finally:
        logger.handlers = []
    assert terminal.getvalue() == "after it\n"
    assert file.getvalue() == "on the screen\nafter it\n"


def test_without_a_terminal_or_the_extra_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "jobqueue top needs a terminal" in refusal("top")
    assert "--every: must be at least" in refusal("top --every 0")
    real = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name.endswith("top_screen.app"):
            raise ImportError("none", name="textual.app")
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(CommandError, match=r"django-jobqueue\[top\].*status --watch"):
        jobqueue("top")


def test_once_prints_what_status_prints() -> None:
    make_many(3, ADD, queue="mail")
    operations.pause([ADD])
    said = jobqueue("top --once").out
    assert "mail" in said
    assert "Paused" in said
