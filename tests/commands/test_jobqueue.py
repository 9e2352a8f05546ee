"""The command itself: its subcommands, its help, and the troubles of its database."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.core.management import call_command
from django.db import connection

from django_jobqueue.management.commands.jobqueue import (
    ENDED_BY_PIPE,
    SUBCOMMANDS,
    Command,
)
from tests.commands.conftest import Manage, Said, parser, refusal
from tests.support.commands import worker_environment

NAMES = (
    "status, health, doctor, metrics, show, why, types, workers, hosts, "
    "limits, failures, operations, enqueue, "
    "run, replay, cancel, run-now, reschedule, fail, release, pause, resume, "
    "override, prune, sleep, wake, roles, "
    "completion, alerts, top, bench, token, import, leases, "
    "personal-data, schedules, schedule, dump, load, move"
)


def test_an_unknown_subcommand_is_answered_with_those_that_there_are() -> None:
    assert refusal("stats") == (
        "Error: There is no subcommand 'stats'. Did you mean 'status'? The "
        f"subcommands are {NAMES}."
    )
    assert refusal("xyzzy") == (
        f"Error: There is no subcommand 'xyzzy'. The subcommands are {NAMES}."
    )
    assert refusal("") == (
        f"Error: Say what to do: {NAMES}. See manage.py jobqueue --help."
    )


def test_an_unknown_option_is_answered_with_the_nearest() -> None:
    hints = {
        "status --wach": "'--wach'. Did you mean '--watch'?",
        "enqueue x --rum-after 1": "'--rum-after'. Did you mean '--run-after'?",
        "enqueue x --countdown 5": "'--countdown'. Write --run-after 10m.",
        "enqueue x --countdown=5": "'--countdown'. Write --run-after 10m.",
        "enqueue x a=1 --failed": "'--failed'.",
        "cancel --error x": "'--error'. It is an option of replay.",
        "replay --failed": "'--failed'. Write --status failed.",
        "replay --job-type x": "'--job-type'. Did you mean '--type'?",
        "cancel --xyzzy": "'--xyzzy'.",
    }
    told = {line: f"Error: There is no option {hint}" for line, hint in hints.items()}
    assert {line: refusal(line) for line in hints} == told


def test_what_is_no_text_is_refused() -> None:
    """Bytes that Python could not decode, and can neither print nor store."""
    for line in ("pause \udcff", "replay --dry-run --error \udcff", "show \udcff"):
        assert "this is not UTF-8" in refusal(line)


def test_an_unknown_option_shows_the_usage_of_its_subcommand(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = Command()
    command._called_from_command_line = True  # private: as Django sets it
    own = command.create_parser("manage.py", "jobqueue")
    for name in SUBCOMMANDS:
        with pytest.raises(SystemExit):
            own.parse_args([name, "x", "--xyzzy"])
        said = capsys.readouterr().err
        assert said.startswith(f"usage: manage.py jobqueue {name} ")
        assert "There is no option '--xyzzy'." in said


def test_only_the_job_queue_s_own_system_checks_are_run() -> None:
    assert list(Command.requires_system_checks) == ["jobqueue"]


def test_every_help_fits_eighty_columns_and_explains_each_option(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    actions = parser()._actions  # private: argparse has no other list of them
    (choices,) = (a.choices for a in actions if a.dest == "subcommand")
    texts = {}
    for name, own in {"": parser(), **choices}.items():
        with pytest.raises(SystemExit) as ended:
            parser().parse_args([*filter(None, [name]), "--help"])
        assert ended.value.code == 0
        texts[name] = capsys.readouterr().out
        below_the_usage = texts[name].partition("\n\n")[2].splitlines()
        assert [line for line in below_the_usage if len(line) > 80] == []
        assert not own.allow_abbrev  # --data would be taken for --database
        if name:
            # private: see above
            assert [action.dest for action in own._actions if not action.help] == []
    for name, subcommand in SUBCOMMANDS.items():
        assert subcommand.summary in texts[""]
        assert subcommand.description.splitlines()[0] in texts[name]


def test_code_can_call_it(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("jobqueue", "completion", "zsh", no_color=True)
    assert "compinit" in capsys.readouterr().out


LOADED = """
import sys, django
def ours():
    return {name for name in sys.modules if name.startswith("django_jobqueue.")}
django.setup()
before = ours()
from django.core.management import load_command_class
command = load_command_class("django_jobqueue", "jobqueue")
command.create_parser("manage.py", "jobqueue").parse_args(["status"])
print(*sorted(ours() - before))
"""
MOST_LOADED = 43  # modules of ours; this number only goes down


@pytest.mark.processes
def test_a_subcommand_loads_none_of_the_others() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        env={**worker_environment(), "DJANGO_SETTINGS_MODULE": "tests.static_settings"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    loaded = done.stdout.split()
    assert "django_jobqueue.management.jobqueue.status" in loaded
    assert len(loaded) <= MOST_LOADED, loaded


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("change", "command"),
    [
        ("RENAME TO elsewhere", "status"),
        ("RENAME COLUMN resume_at TO gone", "pause tests.sample.add"),
    ],
)
def test_missing_tables_or_columns_are_answered_with_migrate(
    change: str, command: str
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE jobqueue_jobtype {change}")
    assert refusal(command) == (
        "The tables of the job queue are missing or not up to date: run manage.py "
        "migrate."
    )


@pytest.mark.processes
def test_mistakes_and_a_database_that_is_away_end_with_an_exit_code_and_one_line(
    manage: Manage,
) -> None:
    away = "postgresql://x@127.0.0.1:1/none"
    unreachable = manage("jobqueue status", DATABASE_URL=away)
    mistaken = manage("jobqueue prune --older-than old")
    for started, message in (
        (unreachable, "CommandError: The database 'default' cannot be used: "),
        (mistaken, "CommandError: --older-than: 'old' is not a duration."),
    ):
        assert started.wait() == 1
        assert started.said.out == ""
        assert started.said.err.startswith(message)
        assert len(started.said.err.splitlines()) == 1


@pytest.mark.processes
def test_common_options_are_understood_before_and_after_the_subcommand(
    manage: Manage,
) -> None:
    flags = "--verbosity 0 --settings tests.settings --no-color"
    before = manage(f"jobqueue {flags} resume --queue mail")
    after = manage(f"jobqueue resume --queue mail {flags} --traceback")
    for started in (before, after):
        assert (started.wait(), started.said) == (0, Said("", ""))


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_a_reader_that_goes_away_ends_the_command_quietly() -> None:
    """At the end of an interpreter of its own, which writes what is left."""
    with subprocess.Popen(
        [sys.executable, "-m", "django", "jobqueue", "types"],
        env=worker_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == ENDED_BY_PIPE
