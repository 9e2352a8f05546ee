"""``jobqueue enqueue --lines``: a job for each line of a file."""

from __future__ import annotations

import getpass
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import CommandError
from django.db import OperationalError

from django_jobqueue.management.jobqueue import batches, enqueue
from django_jobqueue.models import QueuedJob
from tests.commands.conftest import Terminal, jobqueue, needs_rich, refusal
from tests.support.rows import queued

pytestmark = pytest.mark.django_db
ADD = "enqueue tests.sample.add --lines"


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file, of which ten lines become jobs at a time."""
    monkeypatch.setattr(enqueue, "BATCH", 10)
    return tmp_path / "lines.jsonl"


def write(file: Path, count: int, extra: str = "") -> None:
    """So many lines, and one more if there is something extra."""
    text = "".join(f"{json.dumps({'a': number})}\n" for number in range(count))
    file.write_text(text + extra)


def numbers() -> list[int]:
    return sorted(job.data["a"] for job in queued())


def test_each_line_becomes_a_job_with_the_same_options(lines: Path) -> None:
    write(lines, 2, '\n  {"a": 2, "b": 4}')
    said = jobqueue(f"{ADD} {lines} --queue mail --priority -7")
    assert said.out == "3 jobs were enqueued.\n"
    assert [job.data for job in queued()] == [{"a": 0}, {"a": 1}, {"a": 2, "b": 4}]
    user = f"command line ({getpass.getuser()})"
    assert {(job.queue, job.priority, job.enqueued_by) for job in queued()} == {
        ("mail", -7, user)
    }


def test_lines_that_have_a_job_already_are_counted_apart(lines: Path) -> None:
    lines.write_text('{"document": 1}\n{"document": 2}\n{"document": 1}\n')
    command = f"enqueue tests.sample.index --lines {lines}"
    said = jobqueue(command).out
    assert said == "2 jobs were enqueued; 1 line has a job already.\n"
    said = jobqueue(command).out
    assert said == "0 jobs were enqueued; 3 lines have a job already.\n"
    assert len(queued()) == 2


def test_a_dash_is_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"a": 1}\n{"a": 2}\n'))
    jobqueue(f"{ADD} -")
    assert numbers() == [1, 2]


def test_a_byte_order_mark_is_no_part_of_the_first_line(lines: Path) -> None:
    lines.write_text('{"a": 1}\n', encoding="utf-8-sig")
    jobqueue(f"{ADD} {lines}")
    assert numbers() == [1]
    write(lines, 0)
    assert jobqueue(f"{ADD} {lines}").out == "0 jobs were enqueued.\n"


@needs_rich
def test_many_go_in_chunks_and_the_bar_shows_how_far_it_is(lines: Path) -> None:
    write(lines, 25)
    said = jobqueue(f"{ADD} {lines}", stdout=Terminal())
    assert numbers() == list(range(25))
    assert "20 / 25  80.0 %" in said.out
    assert said.out.endswith("\x1b[2K25 jobs were enqueued.\n")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (
            KeyboardInterrupt(),
            130,
            "Interrupted. 10 jobs were enqueued, for the lines up to 12.",
        ),
        (OperationalError("gone"), 1, "cannot be used: gone"),
    ],
)
def test_what_ends_it_early_is_told_with_how_far_it_came(
    lines: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    message: str,
) -> None:
    def end_after_a_batch(steps: Any, *arguments: Any) -> None:
        def one() -> Any:
            yield next(steps)
            raise error

        batches.run_batches(one(), *arguments)

    write(lines, 15)
    lines.write_text("\n\n" + lines.read_text())
    monkeypatch.setattr(enqueue, "run_batches", end_after_a_batch)
    with pytest.raises(CommandError) as refused:
        jobqueue(f"{ADD} {lines}")
    assert message in str(refused.value)
    assert refused.value.returncode == code
    assert numbers() == list(range(10))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{a: 1}", "Line 16: The data is not JSON: Expecting property name"),
        ("[1]", "The data must be an object, not list. Give one JSON object in each"),
        ('{"c": 1}', "Line 16: tests.sample.jobs.add() has no parameter 'c'."),
        ('{"a": NaN}', "Line 16: data['a'] is nan, which JSON does not have."),
        (f'{{"a": "{"x" * 1_000_001}"}}', "Line 16: "),
    ],
    ids=["json", "list", "parameter", "nan", "long"],
)
def test_a_mistake_in_any_line_enqueues_nothing(
    lines: Path, line: str, message: str
) -> None:
    write(lines, 15, line)
    said = refusal(f"{ADD} {lines}")
    assert message in said
    assert said.endswith(" Nothing was enqueued.")
    assert not QueuedJob.objects.exists()


def test_what_makes_no_sense_is_refused(lines: Path) -> None:
    for more in ("a=1", "--id 7", "--format json"):
        assert refusal(f"{ADD} {lines} {more}") == (
            "DATA, --id and --format json are for a single job."
        )
    message = refusal(f"{ADD} {lines}")
    assert message.startswith(f"--lines: {str(lines)!r} cannot be read: [Errno 2]")
    lines.write_bytes(b"\xff\xfe")
    message = refusal(f"{ADD} {lines}")
    assert "cannot be read: 'utf-8' codec can't decode byte 0xff" in message
    write(lines, 1)
    message = refusal(f"enqueue tests.sample.ad --lines {lines}")
    assert message.startswith("There is no job type 'tests.sample.ad'. Did you mean ")
    assert not QueuedJob.objects.exists()
