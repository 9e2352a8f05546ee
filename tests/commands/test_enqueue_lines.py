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

from django_jobqueue.management.jobqueue import batches, enqueue_lines
from django_jobqueue.models import JobType, QueuedJob
from tests.commands.conftest import Terminal, jobqueue, needs_rich
from tests.support.rows import queued

pytestmark = pytest.mark.django_db


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """The file."""
    return tmp_path / "lines.jsonl"


def write(file: Path, count: int, extra: str = "") -> None:
    """So many lines, and one more if there is something extra."""
    text = "".join(f"{json.dumps({'a': number})}\n" for number in range(count))
    file.write_text(text + extra)


def numbers() -> list[int]:
    """What the queued jobs are about."""
    return sorted(job.data["a"] for job in queued())


def refusal(*arguments: str) -> str:
    """What the command says when it refuses; nothing may have been enqueued."""
    with pytest.raises(CommandError) as refused:
        jobqueue("enqueue", *arguments)
    assert not QueuedJob.objects.exists()
    return str(refused.value)


def test_each_line_becomes_a_job_with_the_same_options(lines: Path) -> None:
    write(lines, 3, '\n  {"a": 3, "b": 4}')
    said = jobqueue(
        *("enqueue", "tests.sample.add", "--lines", str(lines)),
        *("--queue", "mail", "--priority", "-7"),
    )
    assert said.out == "4 jobs were enqueued.\n"
    assert [job.data for job in queued()] == [
        {"a": 0},
        {"a": 1},
        {"a": 2},
        {"a": 3, "b": 4},
    ]
    user = f"command line ({getpass.getuser()})"
    assert {(job.queue, job.priority, job.enqueued_by) for job in queued()} == {
        ("mail", -7, user)
    }


def test_lines_that_have_a_job_already_are_counted_apart(lines: Path) -> None:
    lines.write_text('{"document": 1}\n{"document": 2}\n{"document": 1}\n')
    said = jobqueue("enqueue", "tests.sample.index", "--lines", str(lines))
    assert said.out == "2 jobs were enqueued; 1 line has a job already.\n"
    said = jobqueue("enqueue", "tests.sample.index", "--lines", str(lines))
    assert said.out == "0 jobs were enqueued; 3 lines have a job already.\n"
    assert len(queued()) == 2


def test_a_dash_is_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"a": 1}\n{"a": 2}\n'))
    jobqueue("enqueue", "tests.sample.add", "--lines", "-")
    assert numbers() == [1, 2]


def test_a_byte_order_mark_is_no_part_of_the_first_line(lines: Path) -> None:
    lines.write_text('{"a": 1}\n', encoding="utf-8-sig")
    jobqueue("enqueue", "tests.sample.add", "--lines", str(lines))
    assert numbers() == [1]


def test_an_empty_file_enqueues_nothing(lines: Path) -> None:
    write(lines, 0)
    said = jobqueue("enqueue", "tests.sample.add", "--lines", str(lines))
    assert said.out == "0 jobs were enqueued.\n"


def test_a_type_whose_handler_is_not_known_here_is_enqueued_too(lines: Path) -> None:
    JobType.objects.create(name="elsewhere.report", queue="reports")
    write(lines, 3)
    jobqueue("enqueue", "elsewhere.report", "--lines", str(lines))
    assert numbers() == [0, 1, 2]
    assert {job.queue for job in queued()} == {"reports"}


@needs_rich
def test_many_go_in_chunks_and_the_bar_shows_how_far_it_is(lines: Path) -> None:
    write(lines, 2_500)
    said = jobqueue(
        "enqueue", "tests.sample.add", "--lines", str(lines), stdout=Terminal()
    )
    assert numbers() == list(range(2_500))
    assert "2,000 / 2,500  80.0 %" in said.out
    assert said.out.endswith("\x1b[2K2,500 jobs were enqueued.\n")


def test_an_interrupt_says_which_lines_became_jobs(
    lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(seconds: float) -> None:
        raise KeyboardInterrupt

    write(lines, 10, "\n".join(['{"a": 10}'] * 1_500))
    text = lines.read_text()
    lines.write_text("\n\n" + text)
    monkeypatch.setattr(enqueue_lines, "run_batches", _with_rest(stop))
    with pytest.raises(CommandError) as refused:
        jobqueue("enqueue", "tests.sample.add", "--lines", str(lines))
    assert str(refused.value) == (
        "Interrupted. 1,000 jobs were enqueued, for the lines up to 1002."
    )
    assert refused.value.returncode == 130
    assert len(queued()) == 1_000


def test_a_database_that_fails_is_told_with_how_far_it_came(
    lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(seconds: float) -> None:
        raise OperationalError("gone")

    write(lines, 1_500)
    monkeypatch.setattr(enqueue_lines, "run_batches", _with_rest(fail))
    with pytest.raises(CommandError, match="cannot be used: gone"):
        jobqueue("enqueue", "tests.sample.add", "--lines", str(lines))
    assert len(queued()) == 1_000


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{a: 1}", "Line 1501: The data is not JSON: Expecting property name"),
        ("[1]", "The data must be an object, not list. Give one JSON object in each"),
        ('{"c": 1}', "Line 1501: tests.sample.jobs.add() has no parameter 'c'."),
        ('{"a": NaN}', "Line 1501: data['a'] is nan, which JSON does not have."),
        (f'{{"a": "{"x" * 1_000_001}"}}', "Line 1501: "),
    ],
)
def test_a_mistake_in_any_line_enqueues_nothing(
    lines: Path, line: str, message: str
) -> None:
    write(lines, 1_500, line)
    said = refusal("tests.sample.add", "--lines", str(lines))
    assert message in said
    assert said.endswith(" Nothing was enqueued.")


@pytest.mark.parametrize(
    "arguments", [["a=1"], ["--id", "7"], ["--format", "json"]], ids=" ".join
)
def test_what_is_of_a_single_job_is_refused(lines: Path, arguments: list[str]) -> None:
    assert refusal("tests.sample.add", *arguments, "--lines", str(lines)) == (
        "DATA, --id and --format json are for a single job."
    )


def test_a_file_that_is_not_there_or_no_text_is_refused(lines: Path) -> None:
    message = refusal("tests.sample.add", "--lines", str(lines))
    assert message.startswith(f"--lines: {str(lines)!r} cannot be read: [Errno 2]")
    lines.write_bytes(b"\xff\xfe")
    message = refusal("tests.sample.add", "--lines", str(lines))
    assert "cannot be read: 'utf-8' codec can't decode byte 0xff" in message


def test_an_unknown_type_is_answered_with_the_nearest(lines: Path) -> None:
    write(lines, 1)
    message = refusal("tests.sample.ad", "--lines", str(lines))
    assert message.startswith("There is no job type 'tests.sample.ad'. Did you mean ")


def _with_rest(rest: Any) -> Any:
    """Batches between which something happens."""

    def run(steps: Any, *arguments: Any) -> None:
        def slowly() -> Any:
            for done in steps:
                yield done
                rest(0)

        batches.run_batches(slowly(), *arguments)

    return run
