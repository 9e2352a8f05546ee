"""``runworkers``: its flags, and what it does with nothing to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from django_jobqueue.conf import Conf, Count, Flag, Retention, Seconds, conf
from django_jobqueue.management.commands.runworkers import Command
from django_jobqueue.models import JobType, QueuedJob, Worker
from tests.sample import jobs
from tests.support.rows import archived, queued
from tests.support.run_workers import RunWorkers

Start = Callable[..., RunWorkers]

WRONG = {Seconds: "much", Count: "1.5", Flag: "maybe", Retention: "succeeded=soon"}


def refusal(*flags: str) -> str:
    with pytest.raises(CommandError) as refused:
        call_command("runworkers", *flags)
    return str(refused.value)


def test_every_setting_has_a_flag_of_its_name_that_explains_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parser = Command().create_parser("manage.py", "runworkers")
    actions = parser._actions  # private: argparse has no other list of them
    for name, one in Conf.settings.items():
        flag = "--" + name.lower().replace("_", "-")
        (action,) = (a for a in actions if flag in a.option_strings)
        assert one.flag == flag
        assert str(action.help).replace("%%", "%").startswith(one.help)
    with pytest.raises(SystemExit) as ended:
        call_command("runworkers", "--help")
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "--drain" in text
    assert "--lease VALUE" in text


def test_a_wrong_value_is_refused_with_the_flag_s_name() -> None:
    """Of the wrong kind, below the least, or none where there must be one."""
    told: dict[str, str] = {"--thraeds 3": "Error: unrecognized arguments: --thraeds 3"}
    for one in Conf.settings.values():
        for kind, text in WRONG.items():
            if isinstance(one, kind):
                told[f"{one.flag} {text}"] = (
                    f"{one.flag} must be {one.described_as}, not"
                )
        if isinstance(one, Seconds | Count):
            if one.minimum is not None:
                below = type(one.minimum)(one.minimum - 1)
                least = f"{one.flag} must be at least {one.minimum:,}, not "
                told[f"{one.flag}={below}"] = least
            if not one.optional:
                told[f"{one.flag} none"] = ", not 'none'."
    assert len(told) > 40
    before = {name: conf.read(name) for name in Conf.settings}
    found = {line: refusal(*line.split()) for line in told}
    assert {line: found[line] for line in told if told[line] not in found[line]} == {}
    assert {name: conf.read(name) for name in Conf.settings} == before


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
def test_it_says_by_itself_what_it_does(runworkers: Start) -> None:
    told = runworkers(
        *("--drain", "--processes", "2", "--threads", "1", "--queues", "mail,slow"),
        *("--release", "2026.11", "--modules", "job"),
    )
    quiet = runworkers("--drain", "--verbosity", "0")
    assert (told.wait(), quiet.wait(), quiet.output) == (0, 0, "")
    assert {row.state for row in Worker.objects.all()} == {"stopped"}
    first, *_, last = told.output.splitlines()
    settings = connection.settings_dict
    assert re.search(
        r" INFO django_jobqueue \S+ starts 2 worker processes with 1 thread and 100 "
        r"async slots; queues: mail, slow; \d+ handlers; database 'default', which is "
        rf"'{settings['NAME']}' at {re.escape(settings['HOST'])}\S*; release 2026.11$",
        first,
    )
    slip = "WARNING JOBQUEUE['MODULES'] names 'job', which no installed app has"
    assert slip in told.output
    assert last.endswith(" INFO Stopped")


@pytest.mark.django_db(transaction=True)
def test_drain_does_what_can_be_done_now_and_leaves_the_rest(
    runworkers: Start,
) -> None:
    later = jobs.add.using(run_after=timedelta(hours=1)).enqueue(1)
    for verbosity, is_told in (("1", False), ("2", True)):
        made = [jobs.add.enqueue(1), jobs.aadd.enqueue(2)]
        drained = runworkers("--drain", "--verbosity", verbosity)
        assert drained.wait() == 0, drained.output
        assert {job.id for job in made} <= {j.id for j in archived(status="succeeded")}
        for job in made:
            line = f"INFO Job {job.id} ({job.job_type}) attempt 1/5 succeeded after "
            assert (line in drained.output) is is_told
    assert [job.id for job in queued()] == [later.id]


@pytest.mark.django_db(transaction=True)
def test_drain_all_waits_for_retries_and_later_jobs_of_its_queues(
    runworkers: Start,
) -> None:
    soon = timedelta(seconds=0.5)
    mine = [jobs.add.enqueue(1), jobs.add.using(run_after=soon).enqueue(2)]
    mine.append(jobs.fail.using(max_attempts=2, backoff=0.2).enqueue("x"))
    other = jobs.add.using(queue="other").enqueue(3)
    JobType.objects.create(name="elsewhere.unknown")  # no handler has it
    unknown = QueuedJob.objects.create(job_type_id="elsewhere.unknown")
    drained = runworkers("--drain-all", "--queues", "default", "--processes", "2")
    assert drained.wait() == 0, drained.output
    assert "Nothing is left to run: stopping" in drained.output
    assert {job.id for job in archived()} == {job.id for job in mine}
    assert archived(status="failed")[0].attempts == 2
    assert {job.id for job in queued()} == {other.id, unknown.id}


@pytest.mark.django_db(transaction=True)
def test_drain_all_gives_up_after_its_timeout_and_says_so_by_its_exit_code(
    runworkers: Start,
) -> None:
    later = jobs.add.using(run_after=timedelta(hours=1)).enqueue(1)
    drained = runworkers("--drain-all", "--drain-timeout", "0.5s")
    assert drained.wait() == 3, drained.output
    assert "Jobs are left after --drain-timeout 0.5 s: stopping" in drained.output
    assert [job.id for job in queued()] == [later.id]
    assert [row.state for row in Worker.objects.all()] == ["stopped"]


def test_what_makes_no_sense_is_refused() -> None:
    for line, message in {
        "--drain --drain-all": "choose one of them",
        "--reload --drain": "choose one of them",
        "--reload --drain-all": "--reload goes on and --drain-all ends",
        "--drain-timeout 1h": "--drain-timeout belongs to --drain-all.",
        "--drain-all --drain-timeout soon": "--drain-timeout",
        "--threads 0 --async-slots 0": "With --threads 0 and --async-slots 0 nothing "
        "can run.",
    }.items():
        assert message in refusal(*line.split())


@pytest.mark.django_db(transaction=True)
def test_slots_of_one_kind_are_enough(runworkers: Start) -> None:
    for flag, done in (("--threads", "aadd"), ("--async-slots", "add")):
        jobs.add.enqueue(1)
        jobs.aadd.enqueue(1)
        drained = runworkers("--drain", flag, "0")
        assert drained.wait() == 0, drained.output
        newest = archived(status="succeeded")[-1]
        assert newest.job_type_id == f"tests.sample.{done}"
        QueuedJob.objects.all().delete()
