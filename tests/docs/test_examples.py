"""The examples of the documentation do what the pages say."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

import pytest
from django.db import connection

from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedules import schedules
from tests.docs.pages import examples, pages
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued

MODULE = "accounts.jobs"  # where the pages say that their handlers are

ALL = [example for page in pages() for example in examples(page)]
PYTHON = [example for example in ALL if example.language == "python"]
RUN = sorted({example.page for example in ALL if example.is_run})


def raises(
    error: type[Exception], call: Callable[..., Any], *args: Any, **kw: Any
) -> Any:
    """The error that this call raises."""
    with pytest.raises(error) as caught:
        call(*args, **kw)
    return caught.value


@pytest.fixture
def module(
    monkeypatch: pytest.MonkeyPatch, transactional_db: None
) -> Iterator[ModuleType]:
    """The module of a page's examples; its handlers and schedules are forgotten before
    the database is emptied, which declares what is known, or the next page had them."""
    made = ModuleType(MODULE)
    monkeypatch.setitem(sys.modules, MODULE, made)
    before = {declaration.name for declaration in registry}
    planned = set(schedules.names)
    yield made
    for name in {*schedules.names, *schedules.without_call} - planned:
        schedules.remove(name)
    for declaration in registry:
        if declaration.name not in before:
            registry.remove(declaration.name)


def test_every_example_is_python() -> None:
    for example in PYTHON:
        compile(example.text, str(example), "exec")


@pytest.mark.parametrize("page", RUN)
def test_the_examples_of_a_page_run(
    page: str,
    module: ModuleType,
    make_worker: Callable[..., HandDriven],
) -> None:
    def work() -> None:
        make_worker(threads=1, async_slots=1).work()

    module.__dict__.update(
        archived=archived,
        make_worker=make_worker,
        queued=queued,
        raises=raises,
        suppress=suppress,
        work=work,
    )
    for example in examples(page):
        if not example.is_run:
            continue
        if example.language == "sql":
            with connection.cursor() as cursor:
                cursor.execute(example.text)
            continue
        # So that a traceback names the page and the line there.
        lines = "\n" * (example.line - 1) + example.text
        exec(compile(lines, example.page, "exec"), module.__dict__)


def test_the_first_pages_are_run() -> None:
    for page in ("quickstart.md", "guides/enqueueing.md", "guides/retries.md"):
        assert sum(example.is_run for example in examples(f"docs/{page}")) >= 3, page


def test_every_block_is_closed_and_says_its_language() -> None:
    for page, text in pages().items():
        fences = re.findall(r"^```(.*)$", text, re.MULTILINE)
        assert len(fences) % 2 == 0, page
        assert all(fences[0::2]), page
        assert not any(fences[1::2]), page
