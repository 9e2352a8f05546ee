"""``runworkers``: its flags, and what it does with nothing to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from django_jobqueue.conf import Conf, Count, Flag, Retention, Seconds, Setting, conf
from django_jobqueue.management.commands.runworkers import Command
from django_jobqueue.models import JobType, Worker
from tests.sample import jobs
from tests.support.rows import archived, queued
from tests.support.run_workers import RunWorkers

Start = Callable[..., RunWorkers]

NUMBERS = [n for n, s in Conf.settings.items() if isinstance(s, Seconds | Count)]
WRONG = {Seconds: "much", Count: "1.5", Flag: "maybe", Retention: "succeeded=soon"}
CAN_BE_WRONG = [n for n, s in Conf.settings.items() if isinstance(s, tuple(WRONG))]


def refusal(*flags: str) -> str:
    """What the command says when it refuses."""
    with pytest.raises(CommandError) as refused:
        call_command("runworkers", *flags)
    return str(refused.value)


def setting(name: str) -> Setting[Any]:
    """The setting of this name."""
    return Conf.settings[name]


@pytest.mark.parametrize("name", Conf.settings)
def test_every_setting_has_a_flag_of_its_name_that_explains_it(name: str) -> None:
    parser = Command().create_parser("manage.py", "runworkers")
    flag = "--" + name.lower().replace("_", "-")
    (action,) = (a for a in parser._actions if flag in a.option_strings)
    assert setting(name).flag == flag
    assert str(action.help).replace("%%", "%").startswith(setting(name).help)


def test_the_help_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        call_command("runworkers", "--help")
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "--drain" in text
    assert "--lease VALUE" in text


@pytest.mark.parametrize("name", CAN_BE_WRONG)
def test_a_value_of_the_wrong_kind_is_refused_with_the_flag_s_name(name: str) -> None:
    wrong = next(
        text for kind, text in WRONG.items() if isinstance(setting(name), kind)
    )
    before = conf.read(name)
    message = refusal(str(setting(name).flag), wrong)
    assert message.startswith(
        f"{setting(name).flag} must be {setting(name).described_as}, not "
    )
    assert message.endswith(".")
    assert conf.read(name) == before


@pytest.mark.parametrize("name", [n for n in NUMBERS if setting(n).minimum is not None])
def test_a_value_below_the_least_is_refused_with_the_flag_s_name(name: str) -> None:
    least = setting(name).minimum
    assert least is not None
    below = (
        str(least - 1) if isinstance(setting(name), Seconds) else str(int(least) - 1)
    )
    assert refusal(f"{setting(name).flag}={below}").startswith(
        f"{setting(name).flag} must be at least {least:,}, not "
    )


@pytest.mark.parametrize("name", [n for n in NUMBERS if not setting(n).optional])
def test_none_is_refused_where_a_setting_must_have_a_value(name: str) -> None:
    assert refusal(setting(name).flag, "none").endswith(", not 'none'.")


def test_an_unknown_flag_is_refused() -> None:
    assert refusal("--thraeds", "3") == "Error: unrecognized arguments: --thraeds 3"


@pytest.mark.django_db(transaction=True)
def test_flags_win_over_the_settings_in_every_worker(runworkers: Start) -> None:
    started = runworkers(
        *("--threads", "3", "--async-slots", "7", "--processes", "2"),
        *("--queues", "mail,reports", "--release", "2026.11", "--listen", "false"),
    )
    pids = started.started(2)
    rows = Worker.objects.filter(pid__in=pids).order_by("id")
    assert [
        (row.threads, row.async_slots, row.queues, row.release) for row in rows
    ] == [(3, 7, ["mail", "reports"], "2026.11")] * 2
    assert started.stop() == 0


@pytest.mark.django_db(transaction=True)
def test_drain_ends_at_once_where_nothing_waits(runworkers: Start) -> None:
    drained = runworkers("--drain")
    assert drained.wait() == 0, drained.output
    assert [row.state for row in Worker.objects.all()] == ["stopped"]


@pytest.mark.django_db(transaction=True)
def test_drain_does_what_can_be_done_now_and_leaves_the_rest(
    runworkers: Start,
) -> None:
    made = jobs.add.enqueue_many([{"a": n} for n in range(20)])
    later = jobs.add.using(run_after=timedelta(hours=1)).enqueue(1)
    drained = runworkers("--drain")
    assert drained.wait() == 0, drained.output
    assert {job.id for job in archived(status="succeeded")} == set(made)
    assert [job.id for job in queued()] == [later.id]


@pytest.mark.django_db(transaction=True)
def test_drain_all_waits_for_retries_and_later_jobs_of_its_queues(
    runworkers: Start,
) -> None:
    soon = timedelta(seconds=2)
    mine = [jobs.add.enqueue(1), jobs.add.using(run_after=soon).enqueue(2)]
    mine.append(jobs.fail.using(max_attempts=2, backoff=1).enqueue("x"))
    other = jobs.add.using(queue="other").enqueue(3)
    unknown = enqueue_unknown()
    drained = runworkers("--drain-all", "--queues", "default", "--processes", "2")
    assert drained.wait() == 0, drained.output
    assert "Nothing is left to run: stopping" in drained.output
    assert {job.id for job in archived()} == {job.id for job in mine}
    assert archived(status="failed")[0].attempts == 2
    assert {job.id for job in queued()} == {other.id, unknown}


@pytest.mark.django_db(transaction=True)
def test_drain_all_gives_up_after_its_timeout_and_says_so_by_its_exit_code(
    runworkers: Start,
) -> None:
    later = jobs.add.using(run_after=timedelta(hours=1)).enqueue(1)
    drained = runworkers("--drain-all", "--drain-timeout", "2s")
    assert drained.wait() == 3, drained.output
    assert "Jobs are left after --drain-timeout 2 s: stopping" in drained.output
    assert [job.id for job in queued()] == [later.id]
    assert [row.state for row in Worker.objects.all()] == ["stopped"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--drain", "--drain-all"), "choose one of them."),
        (("--reload", "--drain-all"), "--reload goes on and --drain-all ends"),
        (("--drain-timeout", "1h"), "--drain-timeout belongs to --drain-all."),
        (("--drain-all", "--drain-timeout", "soon"), "--drain-timeout"),
    ],
)
def test_drain_all_refuses_what_makes_no_sense_with_it(
    runworkers: Start, flags: tuple[str, ...], message: str
) -> None:
    refused = runworkers(*flags)
    assert refused.wait() == 1
    assert message in refused.output
    assert not Worker.objects.exists()


def enqueue_unknown() -> UUID:
    """A job of a type that no handler has."""
    JobType.objects.create(name="elsewhere.unknown")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobqueue_queuedjob (id, job_type, data) VALUES "
            "(jobqueue_uuidv7(), 'elsewhere.unknown', '{}') RETURNING id"
        )
        return UUID(str(cursor.fetchone()[0]))


@pytest.mark.django_db(transaction=True)
def test_without_a_slot_nothing_can_run_and_it_says_so(runworkers: Start) -> None:
    refused = runworkers("--threads", "0", "--async-slots", "0")
    assert refused.wait() == 1
    assert refused.output == (
        "CommandError: With --threads 0 and --async-slots 0 nothing can run.\n"
    )
    assert not Worker.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("flags", [("--threads", "0"), ("--async-slots", "0")])
def test_slots_of_one_kind_are_enough(
    runworkers: Start, flags: tuple[str, str]
) -> None:
    jobs.add.enqueue(1)
    jobs.aadd.enqueue(1)
    drained = runworkers("--drain", *flags)
    assert drained.wait() == 0, drained.output
    kind = "tests.sample.aadd" if flags[0] == "--threads" else "tests.sample.add"
    assert [job.job_type_id for job in archived(status="succeeded")] == [kind]


@pytest.mark.django_db(transaction=True)
def test_with_verbosity_0_it_says_nothing(runworkers: Start) -> None:
    quiet = runworkers("--drain", "--verbosity", "0")
    assert quiet.wait() == 0
    assert quiet.output == ""


@pytest.mark.django_db(transaction=True)
def test_it_says_by_itself_what_it_does(runworkers: Start) -> None:
    told = runworkers(
        *("--drain", "--processes", "2", "--threads", "1", "--queues", "mail,slow"),
        *("--release", "2026.11"),
    )
    assert told.wait() == 0
    first, *_, last = told.output.splitlines()
    settings = connection.settings_dict
    assert re.search(
        r" INFO django_jobqueue \S+ starts 2 worker processes with 1 thread and 100 "
        r"async slots; queues: mail, slow; \d+ handlers; database 'default', which is "
        rf"'{settings['NAME']}' at {re.escape(settings['HOST'])}\S*; release 2026.11$",
        first,
    )
    assert last.endswith(" INFO Stopped")


@pytest.mark.django_db(transaction=True)
def test_a_slip_in_the_modules_is_a_warning_at_the_start(runworkers: Start) -> None:
    told = runworkers("--drain", "--modules", "job")
    assert told.wait() == 0
    assert (
        "WARNING JOBQUEUE['MODULES'] names 'job', which no installed app has"
    ) in told.output


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("verbosity", "is_told"), [("1", False), ("2", True)])
def test_successes_are_logged_with_verbosity_2(
    runworkers: Start, verbosity: str, is_told: bool
) -> None:
    made, later = jobs.add.enqueue(1), jobs.aadd.enqueue(1)
    told = runworkers("--drain", "--verbosity", verbosity)
    assert told.wait() == 0
    for job in (made, later):
        line = f"INFO Job {job.id} ({job.job_type}) attempt 1/5 succeeded after "
        assert (line in told.output) is is_told
