"""Commands run in this process, with their output caught, or in one of their own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.utils import timezone

from django_jobqueue.domain.ids import new_ids
from django_jobqueue.management.jobqueue import rich_output
from django_jobqueue.models import ArchivedJob
from tests.support.commands import worker_environment


@pytest.fixture(autouse=True)
def any_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runner may have said how wide its own output is."""
    monkeypatch.delenv("COLUMNS", raising=False)


needs_rich = pytest.mark.skipif(not rich_output.IS_INSTALLED, reason="draws with rich")


@pytest.fixture(params=[True, False], ids=["rich", "plain"])
def installed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Once with rich, and once as if it were not installed."""
    there: bool = request.param
    if there:
        pytest.importorskip("rich")
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


def jobqueue(
    *arguments: str, stdout: io.StringIO | None = None, **options: Any
) -> Said:
    """``manage.py jobqueue …``, in this process."""
    out, err = stdout or io.StringIO(), io.StringIO()
    call_command("jobqueue", *arguments, stdout=out, stderr=err, **options)
    return Said(out.getvalue(), err.getvalue())


def make_archived(count: int = 1, **fields: Any) -> list[UUID]:
    """Archived jobs with these fields, oldest first; ``ago`` is when they ended."""
    ago = fields.pop("ago", timedelta(minutes=5))
    ended = timezone.now() - ago
    values = {"job_type_id": "tests.sample.add", "status": "failed", **fields}
    ids = new_ids(count)
    ArchivedJob.objects.bulk_create(
        ArchivedJob(
            id=id,
            data={"a": index},
            finished_at=ended + timedelta(microseconds=index),
            **values,
        )
        for index, id in enumerate(ids)
    )
    return ids


Manage = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def manage(transactional_db: None) -> Iterator[Manage]:
    """Start a command in a process of its own: ``manage("jobqueue", "status")``."""
    made: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **env: str) -> subprocess.Popen[str]:
        made.append(
            subprocess.Popen(
                [sys.executable, "-m", "django", *arguments],
                env={**worker_environment(), **env},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return made[-1]

    yield start
    for process in made:
        process.kill()
        with process:  # closes its pipes and waits
            pass
