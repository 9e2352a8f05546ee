"""The command itself: its subcommands, its help, and the troubles of its database."""

from __future__ import annotations

import subprocess
from argparse import _SubParsersAction

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from django_jobqueue.management.commands.jobqueue import (
    ENDED_BY_PIPE,
    SUBCOMMANDS,
    Command,
)
from tests.commands.conftest import Manage, jobqueue

NAMES = (
    "status, top, health, doctor, metrics, show, why, types, workers, hosts, "
    "leases, limits, schedules, schedule, failures, operations, alerts, enqueue, "
    "run, replay, cancel, run-now, reschedule, fail, release, pause, resume, "
    "override, prune, dump, load, move, personal-data, import, roles, token, bench, "
    "completion"
)


def refusal(*arguments: str) -> str:
    """What the command says when it refuses."""
    with pytest.raises(CommandError) as refused:
        jobqueue(*arguments)
    return str(refused.value)


def test_an_unknown_subcommand_is_answered_with_the_nearest() -> None:
    assert refusal("stats") == (
        "Error: There is no subcommand 'stats'. Did you mean 'status'? The "
        f"subcommands are {NAMES}."
    )


def test_an_unknown_subcommand_like_none_is_answered_with_all() -> None:
    assert refusal("xyzzy") == (
        f"Error: There is no subcommand 'xyzzy'. The subcommands are {NAMES}."
    )


def test_without_a_subcommand_it_says_which_there_are() -> None:
    assert refusal() == (
        f"Error: Say what to do: {NAMES}. See manage.py jobqueue --help."
    )


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["status", "--wach"], "'--wach'. Did you mean '--watch'?"),
        (
            ["enqueue", "x", "--rum-after", "1"],
            "'--rum-after'. Did you mean '--run-after'?",
        ),
        (["enqueue", "x", "--countdown", "5"], "'--countdown'. Write --run-after 10m."),
        (["enqueue", "x", "--countdown=5"], "'--countdown'. Write --run-after 10m."),
        (["enqueue", "x", "a=1", "--failed"], "'--failed'."),
        (["cancel", "--error", "x"], "'--error'. It is an option of replay."),
        (["replay", "--failed"], "'--failed'. Write --status failed."),
        (["replay", "--job-type", "x"], "'--job-type'. Did you mean '--type'?"),
        (["cancel", "--xyzzy"], "'--xyzzy'."),
    ],
)
def test_an_unknown_option_is_answered_with_the_nearest(
    words: list[str], hint: str
) -> None:
    assert refusal(*words) == f"Error: There is no option {hint}"


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_an_unknown_option_shows_the_usage_of_its_subcommand(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = Command()
    command._called_from_command_line = True
    parser = command.create_parser("manage.py", "jobqueue")
    with pytest.raises(SystemExit):
        parser.parse_args([name, "x", "--xyzzy"])
    said = capsys.readouterr().err
    assert said.startswith(f"usage: manage.py jobqueue {name} ")
    assert "There is no option '--xyzzy'." in said


def test_only_the_job_queue_s_own_system_checks_are_run() -> None:
    assert list(Command.requires_system_checks) == ["jobqueue"]


@pytest.mark.parametrize("name", ["", *SUBCOMMANDS])
def test_every_help_fits_eighty_columns(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        call_command("jobqueue", *filter(None, [name]), "--help")
    text = capsys.readouterr().out
    assert ended.value.code == 0
    assert [line for line in text.splitlines() if len(line) > 80] == []


def test_the_help_of_the_command_lists_every_subcommand(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        call_command("jobqueue", "--help")
    text = capsys.readouterr().out
    for subcommand in SUBCOMMANDS.values():
        assert subcommand.summary in text


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_the_help_of_a_subcommand_explains_each_of_its_options(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = Command().create_parser("manage.py", "jobqueue")
    (choices,) = (a.choices for a in parser._actions if a.dest == "subcommand")
    own = choices[name]
    own.print_help()
    text = capsys.readouterr().out
    assert SUBCOMMANDS[name].description.splitlines()[0] in text
    assert [action.dest for action in own._actions if not action.help] == []


@pytest.mark.django_db
def test_missing_tables_are_answered_with_migrate() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobqueue_jobtype RENAME TO elsewhere")
    assert refusal("status") == (
        "The tables of the job queue are missing or not up to date: run manage.py "
        "migrate."
    )


@pytest.mark.django_db
def test_a_missing_column_is_answered_with_migrate() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobqueue_jobtype RENAME COLUMN resume_at TO gone")
    assert "run manage.py migrate" in refusal("pause", "tests.sample.add")


def test_a_database_that_cannot_be_reached_is_named(manage: Manage) -> None:
    process = manage(
        "jobqueue", "status", DATABASE_URL="postgresql://x@127.0.0.1:1/none"
    )
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert err.startswith("CommandError: The database 'default' cannot be used: ")
    assert len(err.splitlines()) == 1


def test_common_options_are_understood_before_and_after_the_subcommand(
    manage: Manage,
) -> None:
    flags = ["--verbosity", "0", "--settings", "tests.settings", "--no-color"]
    before = manage("jobqueue", *flags, "resume", "--queue", "mail")
    after = manage("jobqueue", "resume", "--queue", "mail", *flags, "--traceback")
    for process in (before, after):
        assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == 0


def test_a_mistake_on_the_command_line_ends_with_an_exit_code(manage: Manage) -> None:
    process: subprocess.Popen[str] = manage("jobqueue", "prune", "--older-than", "old")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert "CommandError: --older-than: 'old' is no duration." in err


@pytest.mark.parametrize("subcommand", ["status", "types"])
def test_a_reader_that_goes_away_ends_the_command_quietly(
    manage: Manage, subcommand: str
) -> None:
    process = manage("jobqueue", subcommand)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == ENDED_BY_PIPE


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_no_option_can_be_abbreviated(name: str) -> None:
    """--data for --database would be taken for the name of a database."""
    parser = Command().create_parser("manage.py", "jobqueue")
    (subparsers,) = (
        action for action in parser._actions if isinstance(action, _SubParsersAction)
    )
    assert not parser.allow_abbrev
    assert not subparsers.choices[name].allow_abbrev
