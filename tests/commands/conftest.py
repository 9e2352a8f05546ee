"""Commands run in this process, with their output caught, or in one of their own."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management.base import CommandError, CommandParser
from django.db import connection
from django.utils import timezone

from django_jobqueue.domain import chunk_throttle
from django_jobqueue.domain.ids import new_ids
from django_jobqueue.management.commands.jobqueue import Command
from django_jobqueue.management.jobqueue import rich_output
from django_jobqueue.models import ArchivedJob
from tests.support.commands import start_command


@pytest.fixture(autouse=True)
def any_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runner may have said how wide its own output is."""
    monkeypatch.delenv("COLUMNS", raising=False)


needs_rich = pytest.mark.skipif(not rich_output.IS_INSTALLED, reason="needs rich")


@pytest.fixture(params=[True, False], ids=["rich", "plain"])
def installed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Once with rich, and once as if it were not installed."""
    there: bool = request.param
    if there:
        pytest.importorskip("rich", reason="needs rich")
    else:
        monkeypatch.setattr(rich_output, "IS_INSTALLED", False)
    return there


class Terminal(io.StringIO):
    """A stream that somebody looks at, or types into."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Said:
    """What a command wrote."""

    out: str
    err: str

    @property
    def json(self) -> Any:
        """The output as a program reads it."""
        return json.loads(self.out)


@cache
def parser() -> CommandParser:
    """The command's own, which takes longer to make than most subcommands run."""
    return Command().create_parser("manage.py", "jobqueue")


def jobqueue(*words: str, stdout: io.StringIO | None = None, **options: Any) -> Said:
    """``manage.py jobqueue …``, in this process: the words after it, or all of them as
    somebody types them."""
    out, err = stdout or io.StringIO(), io.StringIO()
    typed = shlex.split(words[0]) if len(words) == 1 else words
    values = {**vars(parser().parse_args(typed)), "skip_checks": True, **options}
    Command().execute(stdout=out, stderr=err, **values)
    return Said(out.getvalue(), err.getvalue())


def refusal(*words: str, **options: Any) -> str:
    """Why the command refuses this."""
    with pytest.raises(CommandError) as refused:
        jobqueue(*words, **options)
    return str(refused.value)


def not_refused(before: str, reasons: Mapping[str, str]) -> dict[str, str]:
    """The command lines, without the words ``before`` them, that are not refused for
    these reasons, and what they say instead."""
    said = {line: refusal(f"{before} {line}") for line in reasons}
    return {line: text for line, text in said.items() if reasons[line] not in text}


@pytest.fixture
def chunks_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bulk operations begin with two jobs; the chunks after it take the rest."""
    monkeypatch.setattr(chunk_throttle, "FIRST", 2)


def make_archived(count: int = 1, **fields: Any) -> list[UUID]:
    """Archived jobs with these fields, oldest first; ``ago`` is when they ended."""
    ended = timezone.now() - fields.pop("ago", timedelta(minutes=5))
    values = {"job_type_id": "tests.sample.add", "status": "failed", **fields}
    first, *others = ids = new_ids(count)
    ArchivedJob.objects.create(id=first, data={"a": 0}, finished_at=ended, **values)
    every = ArchivedJob._meta.concrete_fields
    columns = {one.column: f"first.{one.column}" for one in every} | {
        "id": "copied.id",
        "data": "jsonb_build_object('a', copied.number)",
        "finished_at": "first.finished_at + copied.number * interval '1 microsecond'",
    }
    if others:  # copies by one statement, since there may be thousands
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO jobqueue_archivedjob ({', '.join(columns)}) "
                f"SELECT {', '.join(columns.values())}"
                "  FROM jobqueue_archivedjob AS first,"
                "       unnest(%s::uuid[]) WITH ORDINALITY AS copied (id, number)"
                " WHERE first.id = %s",
                [others, first],
            )
    return ids


class Started:
    """A command in a process of its own."""

    def __init__(self, folder: Path, *words: str, **env: str) -> None:
        self._files = (folder / "out.log", folder / "err.log")
        output, errors = self._files
        self.process = start_command(*words, output=output, errors=errors, **env)

    @property
    def said(self) -> Said:
        """What it has written until now."""
        return Said(
            *(file.read_text() if file.exists() else "" for file in self._files)
        )

    def wait(self) -> int:
        """Wait for its end; returns its exit code."""
        return self.process.wait(60)


Manage = Callable[..., Started]


@pytest.fixture
def manage(
    transactional_db: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Manage]:
    """Start a command in a process of its own: ``manage("jobqueue status")``."""
    made: list[Started] = []

    def start(line: str, **env: str) -> Started:
        folder = tmp_path_factory.mktemp("command")
        made.append(Started(folder, *shlex.split(line), **env))
        return made[-1]

    yield start
    for one in made:
        one.process.kill()
        one.wait()
